// gcc's OpenMP tasks with `depend`: one thread creates, all run.
#include <omp.h>

#include "peer.hpp"

namespace {

struct OpenMp {
    template <class Body>
    Timing operator()(const Program& program, int workers, Body body) const {
        std::vector<char> variables(program.variables);
        char* v = variables.data();
        Timing timing;
#pragma omp parallel num_threads(workers)
#pragma omp single
        {
            timing = Timing();  // inside the team: starting threads is not part of a push
            create(program, v, body);
#pragma omp taskwait
            timing.finish();
        }
        return timing;
    }

  private:
    // A `depend` list is fixed when compiled, so each shape of op has its own construct.
    template <class Body>
    static void create(const Program& program, char* v, const Body& body) {
        for (std::size_t id = 0; id < program.ops.size(); ++id) {
            const Op& op = program.ops[id];
            const auto& r = op.reads;
            if (op.mutates < 0) {
#pragma omp task depend(in : v[r[0]]) firstprivate(id) shared(body)
                body(id);
                continue;
            }
            char& m = v[op.mutates];
            switch (op.n_reads) {
                case 0:
#pragma omp task depend(inout : m) firstprivate(id) shared(body)
                    body(id);
                    break;
                case 2:
#pragma omp task depend(in : v[r[0]], v[r[1]]) depend(inout : m) firstprivate(id) shared(body)
                    body(id);
                    break;
                default:
#pragma omp task depend(in : v[r[0]], v[r[1]], v[r[2]]) depend(inout : m) firstprivate(id) shared(body)
                    body(id);
                    break;
            }
        }
    }
};

}  // namespace

int main(int argc, char** argv) { return peer_main(argc, argv, "OpenMP", OpenMp{}); }
