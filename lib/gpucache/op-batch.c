/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * An operation over a batch: what it would launch for each image is collected, and images that want the same kernel
 * share one launch, which finds each image's arguments in the destination's table, or all of them among its parameters.
 * So what an image becomes is what the operation on it alone makes of it.
 *
 * Where an operation takes several launches one after the other, the first ones of all images are one launch, then the
 * second ones.
 */
#include "op-batch-priv.h"

#include "batch-priv.h"

/* Where a kernel's arguments begin in the table. */
#define TABLE_ALIGNMENT 256

/* What one image wants. */
typedef struct {
  const GpuKernel *kernel;
  unsigned turn; /* how many launches of the same image come before */
  GpuExtent extent;
  size_t args; /* where they are in GpuOpPlan.args */
} Wish;

/* What is launched. */
typedef struct {
  const GpuKernel *kernel;
  unsigned turn;
  GpuExtent extent;
  uint32_t n;
  bool in_table; /* or among the launch's parameters alone */
  size_t args;   /* where they begin in the table, or in Arguments.params */
} Group;

/* Of all groups. @table: on the host as on the device. */
typedef struct {
  GByteArray *table, *params;
} Arguments;

struct GpuOpPlan {
  GArray *wishes; /* of Wish */
  GByteArray *args;
  GPtrArray *reads, *writes; /* of GpuImage, held: what is not in the batches */
  GPtrArray *copies;         /* of GpuImage, in pairs */
  unsigned turn;             /* of the image at hand */
};

static GpuOpPlan *
plan_new (void)
{
  GpuOpPlan *plan = g_new0 (GpuOpPlan, 1);

  plan->wishes = g_array_new (false, false, sizeof (Wish));
  plan->args = g_byte_array_new ();
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
  g_array_unref (plan->wishes);
  g_byte_array_unref (plan->args);
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
  const Wish wish = {kernel, plan->turn++, extent, plan->args->len};
  g_array_append_val (plan->wishes, wish);
  g_byte_array_append (plan->args, args, args_size (gpu_stream_device (op->stream), kernel));
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

/* Puts together what may be one launch. Returns: (transfer full): the groups in the order in which they are to run. */
static GArray *
make_groups (const GpuOpPlan *plan, GpuDevice *device, const Arguments *arguments)
{
  const Wish *wishes = (const Wish *)(void *)plan->wishes->data;
  const unsigned n = plan->wishes->len;
  GArray *groups = g_array_new (false, true, sizeof (Group));
  unsigned turns = 0;

  for (unsigned i = 0; i < n; i++)
    turns = MAX (turns, wishes[i].turn + 1);
  for (unsigned turn = 0; turn < turns; turn++) {
    const unsigned first = groups->len;

    for (unsigned i = 0; i < n; i++) {
      bool known = wishes[i].turn != turn;
      for (unsigned g = first; g < groups->len && !known; g++)
        known = g_array_index (groups, Group, g).kernel == wishes[i].kernel;
      if (known)
        continue;

      const bool in_table = gpu_device_is_host (device) || !wishes[i].kernel->is_without_table;
      GByteArray *args = in_table ? arguments->table : arguments->params;
      align (args);
      Group group = {
          .kernel = wishes[i].kernel, .turn = turn, .extent = {0, 0, 1}, .in_table = in_table, .args = args->len};
      for (unsigned k = i; k < n; k++) {
        if (wishes[k].kernel != group.kernel || wishes[k].turn != turn)
          continue;
        g_byte_array_append (args, plan->args->data + wishes[k].args, args_size (device, group.kernel));
        group.extent.x = MAX (group.extent.x, wishes[k].extent.x);
        group.extent.y = MAX (group.extent.y, wishes[k].extent.y);
        group.n++;
      }
      g_array_append_val (groups, group);
    }
  }
  return groups;
}

typedef struct {
  const GArray *groups;
  const Arguments *arguments;
  const uint8_t *table; /* on the device */
} Launches;

static bool
launch_groups (GpuDevice *device, void *native, void *data, GError **error)
{
  const Launches *launches = data;

  for (unsigned i = 0; i < launches->groups->len; i++) {
    const Group *group = &g_array_index (launches->groups, Group, i);
    const GByteArray *args = group->in_table ? launches->arguments->table : launches->arguments->params;

    if (!gpu_device_launch_table (device, group->kernel, args->data + group->args,
                                  group->in_table ? launches->table + group->args : NULL, group->n, group->extent,
                                  native, error))
      return false;
  }
  return true;
}

/* The images of @batch that have histories. */
static void
list_images (GPtrArray *list, GpuBatch *batch)
{
  if (batch->whole)
    g_ptr_array_add (list, gpu_image_ref (batch->whole));
  else
    for (unsigned i = 0; i < batch->n; i++)
      g_ptr_array_add (list, gpu_image_ref (batch->images[i]));
}

static bool
submit_plan (GpuOpPlan *plan, GpuStream *stream, GpuBatch *src, GpuBatch *dst, GError **error)
{
  for (unsigned i = 0; i < plan->copies->len; i += 2)
    if (!gpu_image_copy (stream, plan->copies->pdata[i], plan->copies->pdata[i + 1], error))
      return false;
  if (!plan->wishes->len)
    return true;

  g_autoptr (GByteArray) table = g_byte_array_new (), params = g_byte_array_new ();
  const Arguments arguments = {table, params};
  g_autoptr (GArray) groups = make_groups (plan, gpu_stream_device (stream), &arguments);
  Launches launches = {.groups = groups, .arguments = &arguments};

  list_images (plan->reads, src);
  if (table->len > 0) {
    if (!gpu_batch_write_table (dst, stream, table->data, table->len, error))
      return false;
    g_ptr_array_add (plan->reads, gpu_image_ref (dst->table));
    launches.table = gpu_image_data (dst->table);
  }
  list_images (plan->writes, dst);
  return gpu_images_submit (stream, (GpuImage *const *)plan->reads->pdata, plan->reads->len,
                            (GpuImage *const *)plan->writes->pdata, plan->writes->len, launch_groups, &launches, error);
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

bool
gpu_op_run_batch (const char *name, GpuStream *stream, GpuBatch *src, GpuBatch *dst, GpuOpFunc func, const void *params,
                  size_t params_size, unsigned n_params, void *data, GError **error)
{
  if (!check_batches (name, stream, src, dst, n_params, error))
    return false;

  GpuOpPlan *plan = plan_new ();
  const GpuOp op = {stream, plan};
  bool ok = true;
  for (unsigned i = 0; i < src->n && ok; i++) {
    const uint8_t *its = params ? (const uint8_t *)params + (n_params == 1 ? 0 : i) * params_size : NULL;

    plan->turn = 0;
    ok = func (&op, src->images[i], dst->images[i], its, data, error);
    if (!ok)
      g_prefix_error (error, "Image %u of a batch: ", i);
  }
  ok = ok && submit_plan (plan, stream, src, dst, error);
  plan_free (plan);
  return ok;
}
