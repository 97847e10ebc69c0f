// The command line of a C++ peer: verify, warm up, time once, print one JSON line.
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
};

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

// run(program, workers, body) executes body(id) for every op in dependency order and returns its Timing.
template <class Run>
int peer_main(int argc, char** argv, const char* name, Run run) {
    const Options options = parse(argc, argv);
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
