/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * See bench.h.
 */
#include "bench.h"

#include <gpucache/testing.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 41
#define ROUND_NS 5e6 /* how long a case should take in a round */
#define MAX_OPERATIONS (1u << 30)

static const char *program;
static FILE *json;
static const char *section;
static double reference; /* the section's first figure; 0 before that */

static double
read_clock (clockid_t clock)
{
  struct timespec now;
  clock_gettime (clock, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

double
bench_now (void)
{
  return read_clock (CLOCK_MONOTONIC);
}

double
bench_cpu_now (void)
{
  return read_clock (CLOCK_THREAD_CPUTIME_ID);
}

void
bench_fail (const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *message = g_strdup_vprintf (format, args);
  va_end (args);
  fprintf (stderr, "%s: %s\n", program, message);
  exit (1);
}

void
bench_check (GError *error)
{
  if (error)
    bench_fail ("%s", error->message);
}

/* Writes @text as JSON's string. */
static void
put_string (const char *text)
{
  putc ('"', json);
  for (const char *c = text; *c; c++) {
    if (*c == '"' || *c == '\\')
      fprintf (json, "\\%c", *c);
    else if ((unsigned char)*c < ' ')
      fprintf (json, "\\u%04x", (unsigned)*c);
    else
      putc (*c, json);
  }
  putc ('"', json);
}

static void
put_member (const char *name, const char *text)
{
  fprintf (json, "\"%s\": ", name);
  put_string (text);
}

GpuDevice *
bench_init (int argc, char **argv)
{
  const char *device_name = NULL, *json_name = NULL;
  const char *slash = strrchr (argv[0], '/');
  program = slash ? slash + 1 : argv[0];
  for (int i = 1; i < argc; i += 2) {
    const char **value = strcmp (argv[i], "--device") == 0 ? &device_name
                         : strcmp (argv[i], "--json") == 0 ? &json_name
                                                           : NULL;
    if (!value)
      bench_fail ("there is no option %s; there are --device NAME and --json FILE", argv[i]);
    if (i + 1 == argc)
      bench_fail ("%s needs a value", argv[i]);
    *value = argv[i + 1];
  }

  /* Else streams share a few of the GPU's queues, and one that a gate holds may hold another. */
  g_setenv ("CUDA_DEVICE_MAX_CONNECTIONS", "32", FALSE);
  GError *error = NULL;
  GpuDevice *device = gpu_device_open (device_name, &error);
  bench_check (error);
  const char *description = gpu_device_description (device);
  printf ("%s on %s (%s), %u CPU cores\n", program, gpu_device_name (device), description, g_get_num_processors ());

  if (json_name) {
    json = fopen (json_name, "a");
    if (!json)
      bench_fail ("%s cannot be written: %s", json_name, g_strerror (errno));
    /* Whole lines, even if this program ends early. */
    setvbuf (json, NULL, _IOLBF, BUFSIZ);
    putc ('{', json);
    put_member ("program", program);
    fputs (", ", json);
    put_member ("device", gpu_device_name (device));
    fputs (", ", json);
    put_member ("description", description);
    fprintf (json, ", \"cores\": %u}\n", g_get_num_processors ());
  }
  return device;
}

int
bench_finish (void)
{
  if (json && fclose (json) != 0)
    bench_fail ("the results could not be written: %s", g_strerror (errno));
  return 0;
}

GpuDevice *
bench_device_new (GpuDevice *like)
{
  void *context = gpu_device_cuda_context (like);
  if (!context)
    return gpu_cpu_device_new ("cpu:0", GPU_CPU_THREADS, 0);
  GError *error = NULL;
  GpuDevice *device = gpu_device_open_cuda_context (context, &error);
  bench_check (error);
  return device;
}

GpuStream *
bench_stream_new (GpuDevice *device)
{
  GError *error = NULL;
  GpuStream *stream = gpu_stream_new (device, true, &error);
  bench_check (error);
  return stream;
}

GpuImage *
bench_image_new (GpuDevice *device, const GpuImageSpec *spec, GpuMemoryKind kind, GpuStream *stream)
{
  GError *error = NULL;
  GpuImage *image = gpu_image_acquire (device, spec, kind, stream, GPU_ACQUIRE_DEFAULT, &error);
  bench_check (error);
  return image;
}

GpuImageSpec
bench_spec (GpuFormat format, uint32_t width, uint32_t height)
{
  GpuImageSpec spec;
  GError *error = NULL;
  gpu_image_spec_init (&spec, format, width, height, 0, &error);
  bench_check (error);
  return spec;
}

static int
compare_doubles (const void *a, const void *b)
{
  double one = *(const double *)a, other = *(const double *)b;
  return one < other ? -1 : one > other;
}

double
bench_median (double *values, unsigned n)
{
  qsort (values, n, sizeof *values, compare_doubles);
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

void
bench_section (const char *title)
{
  section = title;
  reference = 0;
  printf ("\n%-79s  ratio  goal\n", title);
}

/* @own_reference: what the ratio is to, or 0 for the section's. */
static void
add_row (const char *name, double value, double low, double high, const char *unit, double own_reference,
         BenchGoal goal, double goal_ratio)
{
  if (reference == 0)
    reference = value;
  double base = own_reference > 0 ? own_reference : reference;
  double ratio = base == 0 ? 0 : value / base;
  bool met = goal == BENCH_AT_MOST ? ratio <= goal_ratio : ratio >= goal_ratio;
  const char *relation = goal == BENCH_AT_MOST ? "at most" : "at least";

  printf ("  %-58s %12.*f %-6s %8.3g", name, value == (double)(int64_t)value ? 0 : 2, value, unit, ratio);
  if (goal != BENCH_NO_GOAL)
    printf ("  %s %g: %s", relation, goal_ratio, met ? "met" : "NOT met");
  if (own_reference > 0)
    printf (goal == BENCH_NO_GOAL ? "  of %.2f" : " (of %.2f)", own_reference);
  putchar ('\n');
  fflush (stdout);

  if (!json)
    return;
  putc ('{', json);
  put_member ("section", section);
  fputs (", ", json);
  put_member ("name", name);
  fputs (", ", json);
  put_member ("unit", unit);
  fprintf (json, ", \"value\": %.9g, \"low\": %.9g, \"high\": %.9g, \"ratio\": %.9g", value, low, high, ratio);
  if (own_reference > 0)
    fprintf (json, ", \"reference\": %.9g", own_reference);
  if (goal != BENCH_NO_GOAL)
    fprintf (json, ", \"goal\": \"%s %g\", \"met\": %s", relation, goal_ratio, met ? "true" : "false");
  fputs ("}\n", json);
}

void
bench_row (const char *name, double value, const char *unit, BenchGoal goal, double goal_ratio)
{
  add_row (name, value, value, value, unit, 0, goal, goal_ratio);
}

void
bench_row_against (const char *name, double value, const char *unit, double own_reference, BenchGoal goal,
                   double goal_ratio)
{
  add_row (name, value, value, value, unit, own_reference, goal, goal_ratio);
}

/* Warms @one up. Returns: how many operations fill a round. */
static unsigned
calibrate (const BenchCase *one)
{
  unsigned n = 1;
  one->run (one->data, n); /* asks for memory, and takes as long as that does */
  while (one->run (one->data, n) < ROUND_NS && n < MAX_OPERATIONS)
    n *= 2;
  return n;
}

void
bench_compare (const char *title, BenchQuantity quantity, const BenchCase *cases, unsigned n_cases)
{
  g_autofree unsigned *n = g_new (unsigned, n_cases);
  g_autofree double *figures = g_new (double, n_cases *ROUNDS);

  bench_section (title);
  for (unsigned i = 0; i < n_cases; i++)
    n[i] = calibrate (&cases[i]);
  for (unsigned round = 0; round < ROUNDS; round++)
    for (unsigned i = 0; i < n_cases; i++) {
      double ns = cases[i].run (cases[i].data, n[i]);
      figures[i * ROUNDS + round] = quantity == BENCH_TIME ? ns / n[i] : 1e3 * n[i] * MAX (cases[i].threads, 1) / ns;
    }
  for (unsigned i = 0; i < n_cases; i++) {
    double *own = &figures[i * ROUNDS], median = bench_median (own, ROUNDS);
    add_row (cases[i].name, median, own[0], own[ROUNDS - 1], quantity == BENCH_TIME ? "ns" : "M/s", 0, cases[i].goal,
             cases[i].goal_ratio);
  }
}
