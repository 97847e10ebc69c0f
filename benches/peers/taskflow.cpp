// Taskflow: ops pushed one by one, as dependent_async; or, with --again on, a static graph that was built before and runs
// again, which is what a replay is held against. Edges as in onetbb.cpp.
#include <algorithm>
#include <optional>
#include <taskflow/taskflow.hpp>
#include <type_traits>

#include "peer.hpp"

namespace {

struct Variable {
    std::int64_t last_mutation = -1;
    std::vector<std::uint32_t> reads_since;
};

// The ops that must precede each op, each once.
class Predecessors {
  public:
    explicit Predecessors(std::uint32_t variables) : variables_(variables) {}

    template <class AnyOp>
    const std::vector<std::uint32_t>& of(const AnyOp& op, std::uint32_t id) {
        found_.clear();
        for (std::size_t i = 0; i < op.n_reads; ++i) {
            Variable& variable = variables_[op.reads[i]];
            if (variable.last_mutation >= 0) found_.push_back(static_cast<std::uint32_t>(variable.last_mutation));
            variable.reads_since.push_back(id);
        }
        if (op.mutates >= 0) {
            Variable& variable = variables_[op.mutates];
            if (variable.reads_since.empty() && variable.last_mutation >= 0)
                found_.push_back(static_cast<std::uint32_t>(variable.last_mutation));
            for (std::uint32_t reader : variable.reads_since)
                if (reader != id) found_.push_back(reader);
            variable.reads_since.clear();
            variable.last_mutation = id;
        }
        std::sort(found_.begin(), found_.end());
        found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
        return found_;
    }

  private:
    std::vector<Variable> variables_;
    std::vector<std::uint32_t> found_;
};

tf::Executor& executor_of(int workers) {
    static std::optional<tf::Executor> executor;
    if (!executor || executor->num_workers() != static_cast<std::size_t>(workers)) executor.emplace(workers);
    return *executor;
}

// Tasks that are told at their push which ones they come after.
struct Dynamic {
    template <class AnyProgram, class Body>
    Timing operator()(const AnyProgram& program, int workers, Body body) const {
        tf::Executor& executor = executor_of(workers);
        std::vector<tf::AsyncTask> tasks, before;
        tasks.reserve(program.ops.size());
        Timing timing;
        Predecessors predecessors(program.variables);
        for (std::uint32_t id = 0; id < program.ops.size(); ++id) {
            before.clear();
            for (std::uint32_t other : predecessors.of(program.ops[id], id)) before.push_back(tasks[other]);
            tasks.push_back(executor.silent_dependent_async([body, id] { body(id); }, before.begin(), before.end()));
        }
        executor.wait_for_all();
        timing.finish();  // the tasks are let go outside, in the peer's favour
        return timing;
    }
};

struct Static {
    template <class AnyProgram, class Body>
    Timing operator()(const AnyProgram& program, int workers, Body body) const {
        tf::Executor& executor = executor_of(workers);
        tf::Taskflow graph;
        std::vector<tf::Task> tasks;
        tasks.reserve(program.ops.size());
        for (std::size_t id = 0; id < program.ops.size(); ++id) tasks.push_back(graph.emplace([body, id] { body(id); }));
        Predecessors predecessors(program.variables);
        for (std::uint32_t id = 0; id < program.ops.size(); ++id)
            for (std::uint32_t before : predecessors.of(program.ops[id], id)) tasks[before].precede(tasks[id]);
        const std::size_t runs = runs_again(program);
        const bool again = Again && std::is_empty_v<Body>;  // what shows the order runs once
        for (std::size_t i = 0; i < 2 && again; ++i) executor.run(graph).wait();
        Timing timing;
        double best = 1e300;
        for (std::size_t i = 0; i < (again ? runs : 1); ++i) {
            timing = Timing();
            executor.run(graph).wait();
            timing.finish();
            best = std::min(best, timing.nanoseconds);
        }
        timing.nanoseconds = best;
        return timing;
    }
    static bool Again;
};
bool Static::Again = false;

}  // namespace

int main(int argc, char** argv) {
    const Options options = parse(argc, argv);
    if (!options.again) return peer_main(argc, argv, "Taskflow", Dynamic{});
    if (!options.program.empty()) {
        Static::Again = true;
        return metg_main(options, Static{});
    }
    const Program small = make_program(options.pattern, std::min<std::size_t>(options.ops, 20000));
    State state(small);
    Static run;
    run(small, options.workers, [&state](std::size_t id) { state.step(id); });
    const bool verified = state.digest() == serial_digest(small);
    Static::Again = true;
    const Program program = make_program(options.pattern, options.ops);
    const Timing timing = run(program, options.workers, [](std::size_t) { ++ran_here; });
    std::printf("{\"implementation\": \"Taskflow static\", \"pattern\": \"%s\", \"ops\": %zu, \"workers\": %d, "
                "\"ns_per_op\": %.2f, \"verified\": %s}\n",
                options.pattern.c_str(), options.ops, options.workers, timing.nanoseconds / static_cast<double>(options.ops),
                verified ? "true" : "false");
    return verified ? 0 : 1;
}
