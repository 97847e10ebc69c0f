// NVRTC on the host, for tests where there is no GPU: compiles CUDA C++ as C++, with a loop over the grid around each
// kernel. An image is the path of the library that comes of it; the driver in libcuda.c loads that. A kernel's threads
// run one after the other, so __syncthreads() is not to be had. An element that does not lie at a multiple of its size is
// a fault, as it is on a device. Where FAKE_NVRTC_KEPT names a folder, what was compiled once is copied from there;
// FAKE_NVRTC_LEVEL is the optimization of kernels that compute for long.
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <unistd.h>

namespace {

const char* const kPrelude = R"(
typedef decltype(sizeof 0) size_t;
#define __global__
#define __device__
#define __shared__ static thread_local
#define __align__(n) alignas(n)
#define __launch_bounds__(...)
struct Dim { unsigned x, y, z; };
static thread_local Dim threadIdx, blockIdx, blockDim, gridDim;
#define ONE(name) \
    static inline float name(float x) { return __builtin_##name##f(x); } \
    static inline double name(double x) { return __builtin_##name(x); }
#define TWO(name) \
    static inline float name(float x, float y) { return __builtin_##name##f(x, y); } \
    static inline double name(double x, double y) { return __builtin_##name(x, y); }
ONE(acos) ONE(acosh) ONE(asin) ONE(asinh) ONE(atan) ONE(atanh) ONE(cbrt) ONE(ceil) ONE(cos) ONE(cosh) ONE(exp) ONE(exp2)
ONE(expm1) ONE(fabs) ONE(floor) ONE(log) ONE(log10) ONE(log1p) ONE(log2) ONE(rint) ONE(sin) ONE(sinh) ONE(sqrt) ONE(tan)
ONE(tanh) ONE(trunc) TWO(atan2) TWO(copysign) TWO(fmod) TWO(hypot) TWO(nextafter) TWO(pow)
static inline float frexp(float x, int* power) { return __builtin_frexpf(x, power); }
static inline double frexp(double x, int* power) { return __builtin_frexp(x, power); }
static inline float ldexp(float x, int power) { return __builtin_ldexpf(x, power); }
static inline double ldexp(double x, int power) { return __builtin_ldexp(x, power); }
static thread_local int weft_misaligned;
extern "C" void __ubsan_handle_type_mismatch_v1(void*, unsigned long) { weft_misaligned = 1; }
template <class T> struct Plain { typedef T type; };
template <class T> struct Plain<const T> { typedef T type; };
template <unsigned... I> struct Indices {};
template <unsigned N, unsigned... I> struct Counted : Counted<N - 1, N - 1, I...> {};
template <unsigned... I> struct Counted<0, I...> { typedef Indices<I...> type; };
template <class... A, unsigned... I> __attribute__((no_sanitize("alignment"))) // the driver copies what lies anywhere
static void weft_call(void (*kernel)(A...), void** parameters, Indices<I...>) {
    kernel(*(typename Plain<A>::type*)parameters[I]...);
}
template <class... A> static const size_t* weft_sizes(void (*)(A...)) {
    static const size_t sizes[] = {sizeof(typename Plain<A>::type)..., 0};
    return sizes;
}
template <class... A> static int weft_run(void (*kernel)(A...), void** parameters, const unsigned* g, const unsigned* b) {
    gridDim = Dim{g[0], g[1], g[2]}, blockDim = Dim{b[0], b[1], b[2]};
    for (blockIdx.z = 0; blockIdx.z < g[2]; ++blockIdx.z)
    for (blockIdx.y = 0; blockIdx.y < g[1]; ++blockIdx.y)
    for (blockIdx.x = 0; blockIdx.x < g[0]; ++blockIdx.x)
    for (threadIdx.z = 0; threadIdx.z < b[2]; ++threadIdx.z)
    for (threadIdx.y = 0; threadIdx.y < b[1]; ++threadIdx.y)
    for (threadIdx.x = 0; threadIdx.x < b[0]; ++threadIdx.x)
        weft_call(kernel, parameters, typename Counted<sizeof...(A)>::type());
    int misaligned = weft_misaligned;
    weft_misaligned = 0;
    return misaligned;
}
)";

// What a source must be compiled for: a device newer than the compiler takes PTX.
const char* const kTarget = std::getenv("FAKE_NVRTC_IS_OLD") ? "--gpu-architecture=compute_80" : "--gpu-architecture=sm_";

struct Program {
    std::string source, log, image;
};

std::string read(const std::string& path) {
    std::string found;
    if (std::FILE* file = std::fopen(path.c_str(), "rb")) {
        char part[4096];
        while (size_t size = std::fread(part, 1, sizeof part, file)) found.append(part, size);
        std::fclose(file);
    }
    return found;
}

bool write(const std::string& path, const std::string& text) {
    std::FILE* file = std::fopen(path.c_str(), "wb");
    if (!file) return false;
    bool done = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    return std::fclose(file) == 0 && done;
}

bool copy(const std::string& from, const std::string& to) {
    std::string bytes = read(from);
    return !bytes.empty() && write(to, bytes);
}

// Whether a word comes next, which is left behind, and the spaces around it.
bool take(const char*& at, const char* word) {
    while (std::isspace((unsigned char)*at)) ++at;
    size_t size = std::strlen(word);
    if (std::strncmp(at, word, size) != 0) return false;
    for (at += size; std::isspace((unsigned char)*at);) ++at;
    return true;
}

// The name of the kernel that begins here, if one does: extern "C" __global__ __launch_bounds__(...) void name(
std::string kernel(const char* at) {
    if (!take(at, "extern") || !take(at, "\"C\"") || !take(at, "__global__")) return "";
    if (take(at, "__launch_bounds__")) {
        at = std::strchr(at, ')');
        if (!at++) return "";
    }
    if (!take(at, "void")) return "";
    const char* end = at;
    while (std::isalnum((unsigned char)*end) || *end == '_') ++end;
    return std::string(at, end);
}

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) { *major = 12, *minor = 0; return 0; }
int nvrtcGetNumSupportedArchs(int* count) { *count = std::getenv("FAKE_NVRTC_IS_OLD") ? 1 : 3; return 0; }
int nvrtcGetSupportedArchs(int* archs) {
    const int known[] = {80, 90, 100};
    int count;
    nvrtcGetNumSupportedArchs(&count);
    for (int at = 0; at < count; ++at) archs[at] = known[at];
    return 0;
}

const char* nvrtcGetErrorString(int code) { return code == 6 ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR"; }

int nvrtcCreateProgram(Program** program, const char* source, const char*, int headers, const char* const*,
                       const char* const*) {
    if (headers != 2) return 3; // stdint.h and cstdint, which this compiler has
    *program = new Program{source, "", ""};
    return 0;
}

int nvrtcDestroyProgram(Program** program) {
    delete *program;
    *program = nullptr;
    return 0;
}

int nvrtcCompileProgram(Program* program, int count, const char* const* options) {
    bool aimed = false;
    for (int at = 0; at < count; ++at) aimed |= std::strncmp(options[at], kTarget, std::strlen(kTarget)) == 0;
    if (!aimed) return 5;
    const char* folder = std::getenv("FAKE_NVRTC_FOLDER");
    std::string stem = std::string(folder ? folder : "/tmp") + "/kernel-XXXXXX";
    int file = mkstemp(&stem[0]);
    if (file < 0) return 1;
    close(file);
    program->image = stem + ".so";
    std::string text = kPrelude + program->source;
    const char* source = program->source.c_str();
    for (const char* at = source; (at = std::strstr(at, "extern")) != nullptr; ++at) {
        std::string name = kernel(at);
        if (name.empty()) continue;
        text += "\nextern \"C\" int " + name + "__run(void** p, const unsigned* g, const unsigned* b) { return weft_run(&" + name +
                ", p, g, b); }\nextern \"C\" const size_t* " + name + "__sizes() { return weft_sizes(&" + name + "); }\n";
    }
    const char* level = std::getenv("FAKE_NVRTC_LEVEL");
    if (!level) level = "-O0"; // most kernels take longer to compile than to run
    text += "\n// " + std::string(level) + "\n";
    const char* kept = std::getenv("FAKE_NVRTC_KEPT");
    const std::string known = kept ? kept + std::string("/") + std::to_string(std::hash<std::string>()(text)) : "";
    // Each has a copy of its own, as each module has variables of its own.
    if (kept && copy(known, program->image)) return 0;
    if (!write(stem + ".cpp", text)) return 1;
    // In two steps, so that what finds misaligned elements is ours, and not a library.
    std::string command = "g++ -std=c++14 -w -fPIC -ffp-contract=off -fwrapv -fsanitize=alignment " + std::string(level) +
                          " -c -o " + stem + ".o " + stem + ".cpp > " + stem + ".log 2>&1 && ld -shared -o " + program->image + " " + stem + ".o";
    int status = std::system(command.c_str());
    program->log = read(stem + ".log");
    if (status != 0) return 6;
    // By a name of its own first: another process may ask for it at any time.
    const std::string begun = known + stem.substr(stem.rfind('/') + 1);
    if (kept && copy(program->image, begun)) std::rename(begun.c_str(), known.c_str());
    return 0;
}

int nvrtcGetProgramLogSize(Program* program, size_t* size) { *size = program->log.size() + 1; return 0; }
int nvrtcGetProgramLog(Program* program, char* log) { std::strcpy(log, program->log.c_str()); return 0; }
// Each kind of image is for its own kind of target.
int give_size(Program* program, size_t* size, bool text) {
    if (text != !!std::getenv("FAKE_NVRTC_IS_OLD")) return 3;
    *size = program->image.size() + 1;
    return 0;
}
int nvrtcGetCUBINSize(Program* program, size_t* size) { return give_size(program, size, false); }
int nvrtcGetCUBIN(Program* program, char* image) { std::strcpy(image, program->image.c_str()); return 0; }
int nvrtcGetPTXSize(Program* program, size_t* size) { return give_size(program, size, true); }
int nvrtcGetPTX(Program* program, char* image) { std::strcpy(image, program->image.c_str()); return 0; }

}  // extern "C"
