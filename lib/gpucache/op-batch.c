/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * An operation over a batch: what it would launch for each image is collected, and images that want the same kernel
 * share one launch, which finds each image's arguments in the destination's table, or all of them among its parameters.
 * So what an image becomes is what the operation on it alone makes of it. What it would launch for an image of the same
 * shapes as the one before is not asked again: the arguments are the same, but for addresses.
 *
 * Where an operation takes several launches one after the other, the first ones of all images are one launch, then the
 * second ones.
 */
#include "op-batch-priv.h"

#include "batch-priv.h"

#include <string.h>

/* Where a kernel's arguments begin in the table. */
#define TABLE_ALIGNMENT 256

/* What is to be done with one image. */
typedef struct {
  GpuImage *src, *dst;
  const void *params;
} Task;

/* One launch, for all images that want the same kernel. */
typedef struct {
  const GpuKernel *kernel;
  unsigned turn; /* how many launches of the same image come before */
  GpuExtent extent;
  uint32_t n;
  GByteArray *args; /* image after image */
  bool in_table;    /* or among the launch's parameters alone */
  size_t at;        /* where they are in the table */
} Group;

struct GpuOpPlan {
  unsigned n;                /* images */
  GPtrArray *groups;         /* of Group, in the order in which they are to run */
  GPtrArray *reads, *writes; /* of GpuImage, held: what is not in the batches */
  GPtrArray *copies;         /* of GpuImage, in pairs */
  Task task;                 /* at hand */
  unsigned turn;             /* of its launches */
  Group *only;               /* (nullable): where the one launch is that it wants, if that can be repeated for others */
};

static void
group_free (Group *group)
{
  g_byte_array_unref (group->args);
  g_free (group);
}

static GpuOpPlan *
plan_new (unsigned n)
{
  GpuOpPlan *plan = g_new0 (GpuOpPlan, 1);

  plan->n = n;
  plan->groups = g_ptr_array_new_with_free_func ((GDestroyNotify)group_free);
  plan->reads = g_ptr_array_new_with_free_func ((GDestroyNotify)gpu_image_unref);
  plan->writes = g_ptr_array_new_with_free_func ((GDestroyNotify)gpu_image_unref);
  plan->copies = g_ptr_array_new ();
  return plan;
}

/* The last one first: the next plan, which finds the most recent one first (rule 4), has the same at the same places
 * then, and the same table. */
static void
let_go (GPtrArray *images)
{
  while (images->len > 0)
    g_ptr_array_set_size (images, (gint)images->len - 1);
  g_ptr_array_unref (images);
}

static void
plan_free (GpuOpPlan *plan)
{
  g_ptr_array_unref (plan->groups);
  let_go (plan->reads);
  let_go (plan->writes);
  g_ptr_array_unref (plan->copies);
  g_free (plan);
}

/* A GPU takes no more of a kernel's arguments than its first part, if it has one. */
static guint
args_size (GpuDevice *device, const GpuKernel *kernel)
{
  return (guint)(kernel->param_size && !gpu_device_is_host (device) ? kernel->param_size : kernel->args_size);
}

/* Where launches of @kernel go that come @turn launches after an image's first. */
static Group *
find_group (GpuOpPlan *plan, GpuDevice *device, const GpuKernel *kernel, unsigned turn)
{
  unsigned place = 0;

  for (; place < plan->groups->len; place++) {
    Group *group = plan->groups->pdata[place];

    if (group->turn > turn)
      break;
    if (group->kernel == kernel && group->turn == turn)
      return group;
  }
  Group *group = g_new0 (Group, 1);
  group->kernel = kernel;
  group->turn = turn;
  group->extent.z = 1;
  group->args = g_byte_array_sized_new (plan->n * args_size (device, kernel));
  group->in_table = gpu_device_is_host (device) || !kernel->is_without_table;
  g_ptr_array_insert (plan->groups, (gint)place, group);
  return group;
}

typedef struct {
  const GpuKernel *kernel;
  const void *args;
  GpuExtent extent;
} Launch;

static bool
launch (GpuDevice *device, void *native, void *data, GError **error)
{
  const Launch *call = data;

  return gpu_device_launch (device, call->kernel, call->args, call->extent, native, error);
}

bool
gpu_op_launch_between (const GpuOp *op, GpuImage *src, GpuImage *also, GpuImage *dst, const GpuKernel *kernel,
                       const void *args, GpuExtent extent, GError **error)
{
  if (!op->plan) {
    GpuImage *const reads[] = {src, also};
    Launch call = {kernel, args, extent};

    return gpu_images_submit (op->stream, reads, also ? 2 : 1, &dst, 1, launch, &call, error);
  }

  GpuOpPlan *plan = op->plan;
  GpuDevice *device = gpu_stream_device (op->stream);
  Group *group = find_group (plan, device, kernel, plan->turn);
  g_byte_array_append (group->args, args, args_size (device, kernel));
  group->extent.x = MAX (group->extent.x, extent.x);
  group->extent.y = MAX (group->extent.y, extent.y);
  group->n++;
  const bool is_only = plan->turn++ == 0 && src == plan->task.src && !also && dst == plan->task.dst;
  plan->only = is_only && kernel->addresses ? group : NULL;
  if (also) {
    g_ptr_array_add (plan->reads, gpu_image_ref (also));
    g_ptr_array_add (plan->writes, gpu_image_ref (dst));
  }
  return true;
}

bool
gpu_op_launch (const GpuOp *op, GpuImage *src, GpuImage *dst, const GpuKernel *kernel, const void *args,
               GpuExtent extent, GError **error)
{
  return gpu_op_launch_between (op, src, NULL, dst, kernel, args, extent, error);
}

void
gpu_op_keep (const GpuOp *op, GpuImage *scratch)
{
  if (op->plan)
    g_ptr_array_add (op->plan->writes, gpu_image_ref (scratch));
}

bool
gpu_op_copy (const GpuOp *op, GpuImage *src, GpuImage *dst, GError **error)
{
  if (!op->plan)
    return gpu_image_copy (op->stream, src, dst, error);
  g_ptr_array_add (op->plan->copies, src);
  g_ptr_array_add (op->plan->copies, dst);
  return true;
}

/* With zeros: the table is compared with the last one, and what lies between must not tell them apart. */
static void
align (GByteArray *table)
{
  static const uint8_t zeros[TABLE_ALIGNMENT];
  guint beyond = table->len % TABLE_ALIGNMENT;

  if (beyond)
    g_byte_array_append (table, zeros, TABLE_ALIGNMENT - beyond);
}

/* What the groups look for in a table, which is one group's arguments as they are if no other one does.
 * Returns: (transfer full) (nullable). */
static GByteArray *
make_table (const GpuOpPlan *plan)
{
  const Group *last = NULL;
  unsigned n = 0;

  for (unsigned i = 0; i < plan->groups->len; i++) {
    const Group *group = plan->groups->pdata[i];

    if (group->in_table)
      last = group, n++;
  }
  if (n < 2)
    return last ? g_byte_array_ref (last->args) : NULL;

  GByteArray *table = g_byte_array_new ();
  for (unsigned i = 0; i < plan->groups->len; i++) {
    Group *group = plan->groups->pdata[i];

    if (!group->in_table)
      continue;
    align (table);
    group->at = table->len;
    g_byte_array_append (table, group->args->data, group->args->len);
  }
  return table;
}

typedef struct {
  const GpuOpPlan *plan;
  const uint8_t *table; /* on the device */
} Launches;

static bool
launch_groups (GpuDevice *device, void *native, void *data, GError **error)
{
  const Launches *launches = data;

  for (unsigned i = 0; i < launches->plan->groups->len; i++) {
    const Group *group = launches->plan->groups->pdata[i];

    if (!gpu_device_launch_table (device, group->kernel, group->args->data,
                                  group->in_table ? launches->table + group->at : NULL, group->n, group->extent, native,
                                  error))
      return false;
  }
  return true;
}

/* Images with histories, which somebody else holds. */
typedef struct {
  GpuImage **images;
  unsigned n;
} Images;

static void
add_images (Images *list, void *images, unsigned n)
{
  memcpy (list->images + list->n, images, n * sizeof *list->images);
  list->n += n;
}

/* @others, those of @batch, and @table, if it is not NULL. */
static Images
list_images (const GPtrArray *others, GpuBatch *batch, GpuImage *table)
{
  Images list = {.images = g_new (GpuImage *, others->len + batch->n + 1)};

  if (others->len > 0)
    add_images (&list, others->pdata, others->len);
  add_images (&list, batch->whole ? &batch->whole : batch->images, batch->whole ? 1 : batch->n);
  if (table)
    add_images (&list, &table, 1);
  return list;
}

static bool
submit_plan (GpuOpPlan *plan, GpuStream *stream, GpuBatch *src, GpuBatch *dst, GError **error)
{
  for (unsigned i = 0; i < plan->copies->len; i += 2)
    if (!gpu_image_copy (stream, plan->copies->pdata[i], plan->copies->pdata[i + 1], error))
      return false;
  if (!plan->groups->len)
    return true;

  g_autoptr (GByteArray) table = make_table (plan);
  Launches launches = {.plan = plan};
  if (table) {
    if (!gpu_batch_write_table (dst, stream, table, error))
      return false;
    launches.table = gpu_image_data (dst->table);
  }
  const Images reads = list_images (plan->reads, src, table ? dst->table : NULL);
  const Images writes = list_images (plan->writes, dst, NULL);
  const bool ok =
      gpu_images_submit (stream, reads.images, reads.n, writes.images, writes.n, launch_groups, &launches, error);
  g_free (reads.images);
  g_free (writes.images);
  return ok;
}

/* What was put into it may be found in it, and sometimes something else. */
typedef struct {
  uint64_t bits[512];
} Filter;

/* Returns: whether @allocation might have been put in before. */
static bool
filter_add (Filter *filter, const GpuAllocation *allocation)
{
  const uint32_t place = (uint32_t)((uint64_t)(uintptr_t)allocation * UINT64_C (0x9e3779b97f4a7c15) >> 49);
  const uint64_t bit = UINT64_C (1) << place % 64;
  const bool known = filter->bits[place / 64] & bit;

  filter->bits[place / 64] |= bit;
  return known;
}

/* False only if no image of the destination has its memory in common with another one, or with one of the source: to
 * compare each with each takes a batch of 32 longer than a launch. */
static bool
may_share_memory (GpuBatch *src, GpuBatch *dst)
{
  Filter filter = {0};
  bool known = false;

  for (unsigned i = 0; i < src->n; i++)
    filter_add (&filter, src->images[i]->allocation);
  if (dst->whole)
    return filter_add (&filter, dst->images[0]->allocation) || !dst->is_acquired;
  for (unsigned i = 0; i < src->n; i++)
    known |= filter_add (&filter, dst->images[i]->allocation);
  return known;
}

/* Whether the images may be worked on at once: none is written that is another one's source or destination. */
static bool
check_independent (const char *name, GpuBatch *src, GpuBatch *dst, GError **error)
{
  if ((src == dst && dst->is_acquired) || !may_share_memory (src, dst))
    return true;
  for (unsigned i = 0; i < src->n; i++)
    for (unsigned j = 0; j < src->n; j++) {
      const bool reads = i != j && dst->images[i]->allocation == src->images[j]->allocation;
      const bool writes = j < i && !dst->is_acquired && dst->images[i]->allocation == dst->images[j]->allocation;

      if ((reads && !gpu_op_check_apart (name, src->images[j], dst->images[i], error)) ||
          (writes && !gpu_op_check_apart (name, dst->images[j], dst->images[i], error))) {
        g_prefix_error (error, "Image %u of the destination and image %u of the %s of a batch: ", i, j,
                        reads ? "source" : "destination");
        return false;
      }
    }
  return true;
}

static bool
check_batches (const char *name, GpuStream *stream, GpuBatch *src, GpuBatch *dst, unsigned n_params, GError **error)
{
  if (src->n != dst->n && !(dst->whole && src->n < dst->n)) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "%s of a batch of %u images cannot go to one of %u: use batches of the same number of images, or a "
                 "dense destination of more",
                 name, src->n, dst->n);
    return false;
  }
  if (n_params != 1 && n_params != src->n) {
    g_set_error (error, GPU_ERROR, GPU_ERROR_INVALID,
                 "%s of a batch of %u images needs parameters for all or for each, not %u times", name, src->n,
                 n_params);
    return false;
  }
  return gpu_op_check_devices (name, stream, src->images[0], dst->images[0], error) &&
         check_independent (name, src, dst, error);
}

static bool
is_same (const void *one, const void *other, size_t size)
{
  return one == other || !memcmp (one, other, size);
}

/* Whether the arguments for @task are those for the one before it, but for addresses. */
static bool
is_alike (const Task *task, const Task *before, size_t params_size)
{
  const uintptr_t apart = ((uintptr_t)task->src->data ^ (uintptr_t)before->src->data) |
                          ((uintptr_t)task->dst->data ^ (uintptr_t)before->dst->data);

  return apart % GPU_KERNEL_ALIGNMENT == 0 && is_same (task->params, before->params, params_size) &&
         gpu_image_spec_equal (&task->src->spec, &before->src->spec) &&
         gpu_image_spec_equal (&task->dst->spec, &before->dst->spec) &&
         gpu_op_bytes_are_apart (before->src, before->dst) && gpu_op_bytes_are_apart (task->src, task->dst);
}

/* Adds to @group what it has for the task before @task, for @task. */
static void
repeat (Group *group, const Task *task, const Task *before)
{
  const guint size = group->args->len / group->n, at = group->args->len;
  const uintptr_t src = (uintptr_t)task->src->data - (uintptr_t)before->src->data;
  const uintptr_t dst = (uintptr_t)task->dst->data - (uintptr_t)before->dst->data;

  g_byte_array_set_size (group->args, at + size);
  uint8_t *args = memcpy (group->args->data + at, group->args->data + at - size, size);
  for (const GpuKernelAddresses *some = group->kernel->addresses; some->n > 0; some++)
    for (unsigned i = 0; i < some->n && some->at < size; i++) {
      uintptr_t address;

      memcpy (&address, args + some->at + i * sizeof address, sizeof address);
      if (address)
        address += some->in_dst ? dst : src;
      memcpy (args + some->at + i * sizeof address, &address, sizeof address);
    }
  group->n++;
}

bool
gpu_op_run_batch (const char *name, GpuStream *stream, GpuBatch *src, GpuBatch *dst, GpuOpFunc func, const void *params,
                  size_t params_size, unsigned n_params, void *data, GError **error)
{
  if (!check_batches (name, stream, src, dst, n_params, error))
    return false;

  GpuOpPlan *plan = plan_new (src->n);
  const GpuOp op = {stream, plan};
  bool ok = true;
  for (unsigned i = 0; i < src->n && ok; i++) {
    const uint8_t *its = params ? (const uint8_t *)params + (n_params == 1 ? 0 : i) * params_size : NULL;
    const Task task = {src->images[i], dst->images[i], its}, before = plan->task;

    plan->task = task;
    if (plan->only && is_alike (&task, &before, params_size)) {
      repeat (plan->only, &task, &before);
      continue;
    }
    plan->turn = 0;
    plan->only = NULL;
    ok = func (&op, task.src, task.dst, task.params, data, error);
    if (!ok)
      g_prefix_error (error, "Image %u of a batch: ", i);
  }
  ok = ok && submit_plan (plan, stream, src, dst, error);
  plan_free (plan);
  return ok;
}
