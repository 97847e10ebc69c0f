// gcc's OpenMP tasks with `depend`: one thread creates, all run.
#include <omp.h>

#include "peer.hpp"

namespace {

struct OpenMp {
    template <class AnyProgram, class Body>
    Timing operator()(const AnyProgram& program, int workers, Body body) const {
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
    // A `depend` list is fixed when compiled, so each shape of op has its own construct; an iterator, which costs more, has the
    // long ones.
    template <class AnyProgram, class Body>
    static void create(const AnyProgram& program, char* v, const Body& body) {
        for (std::size_t id = 0; id < program.ops.size(); ++id) {
            const auto& op = program.ops[id];
            const auto& r = op.reads;
            if (op.mutates < 0 && op.n_reads == 0) {
#pragma omp task firstprivate(id) shared(body)
                body(id);
                continue;
            }
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
                case 1:
#pragma omp task depend(in : v[r[0]]) depend(inout : m) firstprivate(id) shared(body)
                    body(id);
                    break;
                case 2:
#pragma omp task depend(in : v[r[0]], v[r[1]]) depend(inout : m) firstprivate(id) shared(body)
                    body(id);
                    break;
                case 3:
#pragma omp task depend(in : v[r[0]], v[r[1]], v[r[2]]) depend(inout : m) firstprivate(id) shared(body)
                    body(id);
                    break;
                default:
                    create_long(op, v, id, body);
                    break;
            }
        }
    }

    // gcc keeps the addresses of an iterator on the stack, and loses its place there inside a switch.
    template <class AnyOp, class Body>
    static void create_long(const AnyOp& op, char* v, std::size_t id, const Body& body) {
        const auto& r = op.reads;
        char& m = v[op.mutates];
#pragma omp task depend(iterator(std::size_t k = 0 : op.n_reads), in : v[r[k]]) depend(inout : m) firstprivate(id) shared(body)
        body(id);
    }
};

}  // namespace

int main(int argc, char** argv) { return peer_main(argc, argv, "OpenMP", OpenMp{}); }
