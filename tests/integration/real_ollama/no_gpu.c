/*
 * An empty GPU backend for the CPU-only test server.
 *
 * The Ollama binary is linked against a SYCL backend that would need Intel's GPU runtime. This library
 * takes its place under the same file name. It exports only the four symbols that are looked up, and
 * offers a backend without devices, so that every tensor stays with the CPU backend.
 *
 * It is also preloaded, for shm_open at the end: see there.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

/* The head of ggml's registry record, as the binary reads it (interface version 1). */
struct backend_registry {
    int interface_version;
    const char *(*name)(struct backend_registry *self);
    size_t (*device_count)(struct backend_registry *self);
    void *(*device_at)(struct backend_registry *self, size_t index);
    void *(*find_function)(struct backend_registry *self, const char *function);
    void *private_data;
};

static const char *name(struct backend_registry *self)
{
    (void)self;
    return "none";
}

static size_t device_count(struct backend_registry *self)
{
    (void)self;
    return 0;
}

static void *device_at(struct backend_registry *self, size_t index)
{
    (void)self;
    (void)index;
    return NULL;
}

static void *find_function(struct backend_registry *self, const char *function)
{
    (void)self;
    (void)function;
    return NULL;
}

struct backend_registry *ggml_backend_sycl_reg(void)
{
    static struct backend_registry empty = {
        .interface_version = 1,
        .name = name,
        .device_count = device_count,
        .device_at = device_at,
        .find_function = find_function,
        .private_data = NULL,
    };
    return &empty;
}

/* No backend can be opened, because there is no device. */
void *ggml_backend_sycl_init(int device)
{
    (void)device;
    return NULL;
}

void ggml_backend_sycl_get_device_name(int device, char *text, size_t capacity)
{
    (void)device;
    if (capacity > 0)
        text[0] = '\0';
}

/* C++ name of ggml_format_convert_to_xpu(const void *, void *, unsigned long, int): the GPU build
   rearranges weights here; without a GPU they stay as they are. */
void _Z26ggml_format_convert_to_xpuPKvPvmi(const void *from, void *to, size_t bytes, int tensor_type)
{
    (void)tensor_type;
    if (from != NULL && to != NULL)
        memmove(to, from, bytes);
}

/* The OpenMP runtime notes its presence in a file of the system-wide shared memory folder and removes it
   when it exits. Ollama ends its runners by force, so each would leave one behind: here the note is kept
   in memory that has no name and goes away with the process. */
int shm_open(const char *label, int flags, mode_t mode)
{
    (void)mode;
    if (flags & O_CREAT)
        return memfd_create(label, MFD_CLOEXEC);
    errno = ENOENT;
    return -1;
}
