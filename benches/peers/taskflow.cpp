// A static Taskflow graph, built before and run again: what a replay is held against. Edges as in onetbb.cpp.
#include <algorithm>
#include <optional>
#include <taskflow/taskflow.hpp>

#include "peer.hpp"

namespace {

struct Variable {
    std::int64_t last_mutation = -1;
    std::vector<std::uint32_t> reads_since;
};

// Calls edge(before, after) for every op that must precede another, each pair once.
template <class Edge>
void each_edge(const Program& program, Edge edge) {
    std::vector<Variable> variables(program.variables);
    std::vector<std::uint32_t> found;
    for (std::uint32_t id = 0; id < program.ops.size(); ++id) {
        const Op& op = program.ops[id];
        found.clear();
        for (std::size_t i = 0; i < op.n_reads; ++i) {
            Variable& variable = variables[op.reads[i]];
            if (variable.last_mutation >= 0) found.push_back(static_cast<std::uint32_t>(variable.last_mutation));
            variable.reads_since.push_back(id);
        }
        if (op.mutates >= 0) {
            Variable& variable = variables[op.mutates];
            if (variable.reads_since.empty() && variable.last_mutation >= 0)
                found.push_back(static_cast<std::uint32_t>(variable.last_mutation));
            for (std::uint32_t reader : variable.reads_since)
                if (reader != id) found.push_back(reader);
            variable.reads_since.clear();
            variable.last_mutation = id;
        }
        std::sort(found.begin(), found.end());
        found.erase(std::unique(found.begin(), found.end()), found.end());
        for (std::uint32_t before : found) edge(before, id);
    }
}

struct Taskflow {
    template <class Body>
    Timing operator()(const Program& program, int workers, Body body) const {
        static std::optional<tf::Executor> executor;
        if (!executor || executor->num_workers() != static_cast<std::size_t>(workers)) executor.emplace(workers);
        tf::Taskflow graph;
        std::vector<tf::Task> tasks;
        tasks.reserve(program.ops.size());
        for (std::size_t id = 0; id < program.ops.size(); ++id) tasks.push_back(graph.emplace([body, id] { body(id); }));
        each_edge(program, [&](std::uint32_t before, std::uint32_t after) { tasks[before].precede(tasks[after]); });
        const std::size_t runs = program.ops.size() < 10000 ? 50 : 3;
        for (std::size_t i = 0; i < 2 && Again; ++i) executor->run(graph).wait();
        Timing timing;
        double best = 1e300;
        for (std::size_t i = 0; i < (Again ? runs : 1); ++i) {
            timing = Timing();
            executor->run(graph).wait();
            timing.finish();
            best = std::min(best, timing.nanoseconds);
        }
        timing.nanoseconds = best;
        return timing;
    }
    static bool Again;
};
bool Taskflow::Again = false;

}  // namespace

int main(int argc, char** argv) {
    const Options options = parse(argc, argv);
    const Program small = make_program(options.pattern, std::min<std::size_t>(options.ops, 20000));
    State state(small);
    Taskflow run;
    run(small, options.workers, [&state](std::size_t id) { state.step(id); });
    const bool verified = state.digest() == serial_digest(small);
    Taskflow::Again = true;
    const Program program = make_program(options.pattern, options.ops);
    const Timing timing = run(program, options.workers, [](std::size_t) { ++ran_here; });
    std::printf("{\"implementation\": \"Taskflow static\", \"pattern\": \"%s\", \"ops\": %zu, \"workers\": %d, "
                "\"ns_per_op\": %.2f, \"verified\": %s}\n",
                options.pattern.c_str(), options.ops, options.workers, timing.nanoseconds / static_cast<double>(options.ops),
                verified ? "true" : "false");
    return verified ? 0 : 1;
}
