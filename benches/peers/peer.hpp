// The command line of a C++ peer: verify, warm up, time once, print one JSON line; with --program, that of benches/metg.py.
#pragma once

#include <algorithm>
#include <cinttypes>
#include <cstring>

#include "patterns.hpp"

struct Options {
    std::string pattern = "chain";
    std::size_t ops = 100000;
    int workers = 2;
    bool again = false;  // run a graph that was built before
    std::string program;  // a file with a grid of tasks
    std::vector<std::size_t> lengths;  // of their kernel
    int runs = 1;  // the best of so many is told
};

inline std::vector<std::size_t> parse_numbers(const char* text) {
    std::vector<std::size_t> numbers;
    for (char* end = nullptr; *text != 0; text = *end == ',' ? end + 1 : end) numbers.push_back(std::strtoull(text, &end, 10));
    return numbers;
}

inline Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--json") == 0) continue;  // the only output there is
        if (i + 1 == argc) {
            std::fprintf(stderr, "%s needs a value\n", argv[i]);
            std::exit(2);
        }
        const std::string flag = argv[i];
        const char* value = argv[++i];
        if (flag == "--pattern") options.pattern = value;
        else if (flag == "--ops") options.ops = std::strtoull(value, nullptr, 10);
        else if (flag == "--workers") options.workers = std::atoi(value);
        else if (flag == "--again") options.again = std::strcmp(value, "on") == 0;
        else if (flag == "--program") options.program = value;
        else if (flag == "--lengths") options.lengths = parse_numbers(value);
        else if (flag == "--runs") options.runs = std::atoi(value);
        else {
            std::fprintf(stderr, "unknown flag: %s\n", flag.c_str());
            std::exit(2);
        }
    }
    return options;
}

// Ops run by this thread so far, counted by the timed body.
inline thread_local std::uint64_t ran_here = 0;

// One timed run: made and finished on the creating thread.
class Timing {
  public:
    void finish() {
        nanoseconds = watch_.nanoseconds();
        by_creator = ran_here - before_;
    }

    double nanoseconds = 0;
    std::uint64_t by_creator = 0;

  private:
    std::uint64_t before_ = ran_here;
    Stopwatch watch_;
};

// How often a graph that was built before is run; the best run counts.
template <class AnyProgram>
std::size_t runs_again(const AnyProgram& program) {
    return program.ops.size() < 10000 ? 50 : 3;
}

// No task of a grid reads more.
constexpr std::size_t kColumns = 16;
using Grid = BasicProgram<kColumns>;

// One run after another tells the best itself, see metg_main.
inline std::size_t runs_again(const Grid&) { return 1; }

// What weft.bench.metg.patterns.write wrote.
inline Grid read_grid(const std::string& path) {
    std::FILE* file = std::fopen(path.c_str(), "r");
    std::size_t ops = 0;
    Grid grid;
    bool good = file != nullptr && std::fscanf(file, "%" SCNu32 " %zu", &grid.variables, &ops) == 2;
    grid.ops.resize(good ? ops : 0);
    for (auto& op : grid.ops) {
        good = good && std::fscanf(file, "%" SCNd32 " %" SCNu8, &op.mutates, &op.n_reads) == 2 && op.n_reads <= kColumns;
        for (std::size_t i = 0; good && i < op.n_reads; ++i) good = std::fscanf(file, "%" SCNu32, &op.reads[i]) == 1;
    }
    if (file != nullptr) std::fclose(file);
    if (!good) {
        std::fprintf(stderr, "no grid of tasks: %s\n", path.c_str());
        std::exit(2);
    }
    return grid;
}

// The digits that a task of the timed grid reads: all 0, one multiplication after the other.
inline const char* kernel_digits = "";

// Verifies a grid, then times it for each length of its kernel.
template <class Run>
int metg_main(const Options& options, Run run) {
    const Grid grid = read_grid(options.program);
    State state(grid);
    run(grid, options.workers, [&state](std::size_t id) { state.step(id); });
    const std::uint64_t digest = state.digest();
    const bool verified = digest == serial_digest(grid);

    const std::string text(*std::max_element(options.lengths.begin(), options.lengths.end()), '0');
    std::printf("{\"verified\": %s, \"digest\": \"%016" PRIx64 "\", \"ns_per_op\": [", verified ? "true" : "false", digest);
    const char* separator = "";
    for (std::size_t length : options.lengths) {
        kernel_digits = text.c_str() + (text.size() - length);
        const auto compute = [](std::size_t) { ran_here += 1 + static_cast<std::uint64_t>(std::atoi(kernel_digits)); };
        run(grid, options.workers, compute);
        double best = 1e300;
        for (int i = 0; i < options.runs; ++i) best = std::min(best, run(grid, options.workers, compute).nanoseconds);
        std::printf("%s%.2f", separator, best / static_cast<double>(grid.ops.size()));
        separator = ", ";
    }
    std::printf("]}\n");
    return verified ? 0 : 1;
}

// run(program, workers, body) executes body(id) for every op in dependency order and returns its Timing.
template <class Run>
int peer_main(int argc, char** argv, const char* name, Run run) {
    const Options options = parse(argc, argv);
    if (!options.program.empty()) return metg_main(options, run);
    const Program small = make_program(options.pattern, std::min<std::size_t>(options.ops, 20000));
    State state(small);
    run(small, options.workers, [&state](std::size_t id) { state.step(id); });
    const std::uint64_t digest = state.digest();
    const bool verified = digest == serial_digest(small);

    const Program program = make_program(options.pattern, options.ops);
    const auto no_op = [](std::size_t) { ++ran_here; };
    run(program, options.workers, no_op);
    const Timing timing = run(program, options.workers, no_op);
    const double n = static_cast<double>(options.ops);
    // On a loaded machine a second thread may get no processor at all: then this was a run on one.
    const double by_others = 1 - static_cast<double>(timing.by_creator) / n;
    std::printf("{\"implementation\": \"%s\", \"pattern\": \"%s\", \"ops\": %zu, \"workers\": %d, \"ns_per_op\": %.2f, "
                "\"by_others\": %.4f, \"verified\": %s, \"verified_ops\": %zu, \"digest\": \"%016" PRIx64 "\"}\n",
                name, options.pattern.c_str(), options.ops, options.workers, timing.nanoseconds / n, by_others,
                verified ? "true" : "false", small.ops.size(), digest);
    return verified ? 0 : 1;
}
