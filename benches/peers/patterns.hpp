// The five dependency patterns of table A, shared by the C++ peers; and grids of tasks, which come from a file.
//
// weft.bench.patterns holds the same definitions; the digest printed by every implementation shows that all of them ran the
// same program in an order equal to the serial one.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

template <std::size_t Reads>
struct BasicOp {
    std::array<std::uint32_t, Reads> reads{};
    std::uint8_t n_reads = 0;
    std::int32_t mutates = -1;  // -1: reads only
};

template <std::size_t Reads>
struct BasicProgram {
    std::uint32_t variables = 0;
    std::vector<BasicOp<Reads>> ops;
};

using Op = BasicOp<3>;
using Program = BasicProgram<3>;

// splitmix64 (Steele, Lea, Flood 2014), written out so that every implementation draws the same numbers.
class SplitMix64 {
  public:
    explicit SplitMix64(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next() {
        std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
        return z ^ (z >> 31);
    }

  private:
    std::uint64_t state_;
};

constexpr std::uint64_t kSeed = 0x77656674;  // "weft"
constexpr std::uint32_t kIndependentVariables = 1024;
constexpr std::uint32_t kRandomVariables = 256;
constexpr std::size_t kFanReaders = 64;
constexpr std::uint32_t kStencilWidth = 64;

inline Op mutation(std::uint32_t variable) {
    Op op;
    op.mutates = static_cast<std::int32_t>(variable);
    return op;
}

inline Op fan_op(std::size_t id) {
    const std::size_t place = id % (kFanReaders + 2);
    if (place == 0 || place == kFanReaders + 1) return mutation(0);
    Op op;
    op.n_reads = 1;
    return op;
}

inline Op random_op(SplitMix64& random) {
    Op op;
    op.n_reads = 2;
    op.reads[0] = random.next() % kRandomVariables;
    do op.reads[1] = random.next() % kRandomVariables;
    while (op.reads[1] == op.reads[0]);
    std::uint32_t target;
    do target = random.next() % kRandomVariables;
    while (target == op.reads[0] || target == op.reads[1]);
    op.mutates = static_cast<std::int32_t>(target);
    return op;
}

// Clipped at both ends: the outermost ops of a row read two variables.
inline Op stencil_op(std::size_t id) {
    const std::size_t row = id / kStencilWidth;
    const std::uint32_t column = id % kStencilWidth;
    const std::uint32_t before = (row + 1) % 2 * kStencilWidth;
    Op op = mutation(static_cast<std::uint32_t>(row % 2) * kStencilWidth + column);
    const std::uint32_t first = column == 0 ? 0 : column - 1;
    const std::uint32_t last = column + 1 == kStencilWidth ? column : column + 1;
    for (std::uint32_t i = first; i <= last; ++i) op.reads[op.n_reads++] = before + i;
    return op;
}

inline Program make_program(const std::string& pattern, std::size_t n) {
    Program program;
    program.ops.reserve(n);
    SplitMix64 random(kSeed);
    for (std::size_t id = 0; id < n; ++id) {
        if (pattern == "chain") {
            program.variables = 1;
            program.ops.push_back(mutation(0));
        } else if (pattern == "independent") {
            program.variables = kIndependentVariables;
            program.ops.push_back(mutation(id % kIndependentVariables));
        } else if (pattern == "fan") {
            program.variables = 1;
            program.ops.push_back(fan_op(id));
        } else if (pattern == "random") {
            program.variables = kRandomVariables;
            program.ops.push_back(random_op(random));
        } else if (pattern == "stencil") {
            program.variables = 2 * kStencilWidth;
            program.ops.push_back(stencil_op(id));
        } else {
            std::fprintf(stderr, "unknown pattern: %s\n", pattern.c_str());
            std::exit(2);
        }
    }
    return program;
}

// Order-sensitive values: any two ops that swap although one must precede the other change the digest.
template <std::size_t Reads>
class State {
  public:
    explicit State(const BasicProgram<Reads>& program) : program_(program), values_(program.variables), slots_(program.ops.size()) {}

    void step(std::size_t id) {
        const BasicOp<Reads>& op = program_.ops[id];
        std::uint64_t slot = id + 1;
        for (std::size_t i = 0; i < op.n_reads; ++i) slot = slot * 31 + values_[op.reads[i]];
        // Some ops take longer, so that an op granted too early is seen.
        if (id % 16 == 0) linger();
        if (op.mutates >= 0) values_[op.mutates] = values_[op.mutates] * 31 + slot;
        slots_[id] = slot;
    }

    std::uint64_t digest() const {
        std::uint64_t all = 0;
        for (std::uint64_t value : values_) all = all * 31 + value;
        for (std::uint64_t slot : slots_) all = all * 31 + slot;
        return all;
    }

  private:
    static void linger() {
        for (int i = 0; i < 200; ++i) asm volatile("" ::: "memory");
    }

    const BasicProgram<Reads>& program_;
    std::vector<std::uint64_t> values_;
    std::vector<std::uint64_t> slots_;
};

template <std::size_t Reads>
std::uint64_t serial_digest(const BasicProgram<Reads>& program) {
    State state(program);
    for (std::size_t id = 0; id < program.ops.size(); ++id) state.step(id);
    return state.digest();
}

class Stopwatch {
  public:
    double nanoseconds() const {
        return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start_).count();
    }

  private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};
