// A stand-in for the driver library, to test the kit without a GPU: device memory is host memory, a kernel is the
// shared object that tests/kernels/host_run.py builds of it ($FAKE_CUDA_KERNELS/NAME.so), and a module loads when its image
// has a section .text.NAME and a record with code 0x2f in .nv.info, so that trimming finds something needed.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string>

namespace {

enum { OK = 0, INVALID_VALUE = 1, INVALID_IMAGE = 200, NOT_FOUND = 500, LAUNCH_FAILED = 719 };

struct FakeModule {
    std::string kernel;
    void *library = nullptr;
};

const Elf64_Shdr *headers_of(const char *image, unsigned int &count, const char *&names)
{
    auto *header = reinterpret_cast<const Elf64_Ehdr *>(image);
    auto *sections = reinterpret_cast<const Elf64_Shdr *>(image + header->e_shoff);
    count = header->e_shnum;
    names = image + sections[header->e_shstrndx].sh_offset;
    return sections;
}

bool has_register_count(const char *bytes, uint64_t size)
{
    for (uint64_t at = 0; at + 4 <= size;) {
        if (static_cast<unsigned char>(bytes[at + 1]) == 0x2f)
            return true;
        uint16_t value;
        memcpy(&value, bytes + at + 2, 2);
        at += 4 + (bytes[at] == 4 ? value : 0);
    }
    return false;
}

} // namespace

extern "C" {

int cuInit(unsigned int) { return OK; }
int cuDriverGetVersion(int *v) { return *v = 13000, OK; }
int cuDeviceGetCount(int *n) { return *n = 1, OK; }
int cuDeviceGet(int *d, int) { return *d = 0, OK; }
int cuDeviceGetName(char *text, int size, int) { return strncpy(text, "stand-in", size), OK; }
int cuDeviceGetAttribute(int *v, int which, int) { return *v = which == 75 ? 9 : 0, OK; }
int cuDevicePrimaryCtxRetain(void **c, int) { return *c = nullptr, OK; }
int cuCtxSetCurrent(void *) { return OK; }
int cuCtxSynchronize() { return OK; }

int cuModuleLoadData(void **module, const char *image)
{
    if (memcmp(image, "\177ELF", 4) != 0)
        return INVALID_IMAGE;
    unsigned int count;
    const char *names;
    const Elf64_Shdr *sections = headers_of(image, count, names);
    auto *found = new FakeModule;
    bool counted = false;
    for (unsigned int i = 0; i < count; ++i) {
        std::string name = sections[i].sh_type == SHT_NULL ? "" : names + sections[i].sh_name;
        if (name.rfind(".text.", 0) == 0)
            found->kernel = name.substr(6);
        if (name == ".nv.info")
            counted = has_register_count(image + sections[i].sh_offset, sections[i].sh_size);
    }
    if (found->kernel.empty() || !counted)
        return INVALID_IMAGE;
    *module = found;
    return OK;
}

int cuModuleUnload(void *module)
{
    auto *fake = static_cast<FakeModule *>(module);
    if (fake->library)
        dlclose(fake->library);
    delete fake;
    return OK;
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
    auto *fake = static_cast<FakeModule *>(module);
    if (fake->kernel != name)
        return NOT_FOUND;
    std::string path = std::string(getenv("FAKE_CUDA_KERNELS")) + "/" + name + ".so";
    fake->library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    *function = fake;
    return fake->library ? OK : NOT_FOUND;
}

int cuModuleGetGlobal_v2(uint64_t *address, size_t *size, void *module, const char *name)
{
    auto *fake = static_cast<FakeModule *>(module);
    void *symbol = dlsym(fake->library, name);
    Dl_info info;
    const Elf64_Sym *entry = nullptr;
    if (!symbol || !dladdr1(symbol, &info, reinterpret_cast<void **>(const_cast<Elf64_Sym **>(&entry)), RTLD_DL_SYMENT))
        return NOT_FOUND;
    *address = reinterpret_cast<uint64_t>(symbol);
    *size = entry->st_size;
    return OK;
}

int cuFuncGetAttribute(int *v, int which, void *) { return *v = which, OK; }
int cuFuncSetAttribute(void *, int, int) { return OK; }
int cuMemAlloc_v2(uint64_t *address, size_t size) { return *address = reinterpret_cast<uint64_t>(malloc(size)), OK; }
int cuMemFree_v2(uint64_t address) { return free(reinterpret_cast<void *>(address)), OK; }
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t n) { return memcpy(reinterpret_cast<void *>(to), from, n), OK; }
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t n) { return memcpy(to, reinterpret_cast<void *>(from), n), OK; }

int cuLaunchKernel(void *function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
                   unsigned int bz, unsigned int, void *, void **args, void **)
{
    auto *fake = static_cast<FakeModule *>(function);
    auto launch = reinterpret_cast<int (*)(void *, void **, const unsigned int *)>(dlsym(fake->library, "shim_launch"));
    const unsigned int dims[6] = {gx, gy, gz, bx, by, bz};
    for (unsigned int size : dims)
        if (size == 0)
            return INVALID_VALUE;
    return launch(dlsym(fake->library, "shim_entry"), args, dims) ? LAUNCH_FAILED : OK;
}

int cuEventCreate(void **e, unsigned int) { return *e = nullptr, OK; }
int cuEventRecord(void *, void *) { return OK; }
int cuEventSynchronize(void *) { return OK; }
int cuEventElapsedTime(float *ms, void *, void *) { return *ms = 0.25f, OK; }
int cuEventDestroy_v2(void *) { return OK; }

int cuGetErrorName(int status, const char **text)
{
    *text = status == INVALID_IMAGE ? "CUDA_ERROR_INVALID_IMAGE"
            : status == NOT_FOUND   ? "CUDA_ERROR_NOT_FOUND"
            : status == LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED"
                                      : "CUDA_ERROR_INVALID_VALUE";
    return OK;
}
}
