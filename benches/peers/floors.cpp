// What the hardware asks for: no engine can be cheaper than a few of these per op. One JSON line.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "patterns.hpp"

namespace {

__attribute__((noinline)) std::int32_t no_op(void*) {
    asm volatile("");
    return 0;
}

struct alignas(128) Line {
    std::atomic<std::uint64_t> word{0};
};

double call(std::uint64_t n) {
    std::int32_t (*volatile function)(void*) = no_op;
    Stopwatch watch;
    for (std::uint64_t i = 0; i < n; ++i) function(nullptr);
    return watch.nanoseconds() / static_cast<double>(n);
}

double atomic_add(std::uint64_t n) {
    Line line;
    Stopwatch watch;
    for (std::uint64_t i = 0; i < n; ++i) line.word.fetch_add(1, std::memory_order_acq_rel);
    return watch.nanoseconds() / static_cast<double>(n);
}

void turn(Line& line, std::uint64_t first, std::uint64_t n) {
    for (std::uint64_t i = first; i < 2 * n; i += 2) {
        while (line.word.load(std::memory_order_acquire) != i) {}
        line.word.store(i + 1, std::memory_order_release);
    }
}

// One way: two threads take turns on one line.
double hand_off(std::uint64_t n) {
    Line line;
    std::thread other([&] { turn(line, 1, n); });
    turn(line, 0, 64);  // the other thread is running now
    while (line.word.load(std::memory_order_acquire) != 128) {}
    Stopwatch watch;
    for (std::uint64_t i = 128; i < 2 * n; i += 2) {
        while (line.word.load(std::memory_order_acquire) != i) {}
        line.word.store(i + 1, std::memory_order_release);
    }
    while (line.word.load(std::memory_order_acquire) != 2 * n) {}
    const double elapsed = watch.nanoseconds();
    other.join();
    return elapsed / static_cast<double>(2 * n - 128);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string name = argc > 1 ? argv[1] : "";
    const std::uint64_t n = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1000000;
    double ns = 0;
    if (name == "native call") ns = call(n);
    else if (name == "uncontended atomic") ns = atomic_add(n);
    else if (name == "cache-line hand-off, one way") ns = hand_off(n / 10 + 128);
    else {
        std::fprintf(stderr, "unknown floor: %s\n", name.c_str());
        return 2;
    }
    std::printf("{\"floor\": \"%s\", \"ns\": %.3f}\n", name.c_str(), ns);
}
