/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * An intrusive ordered tree: best fit and least recently used in O(log n) without an allocation.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct GpuTreeNode GpuTreeNode;
struct GpuTreeNode {
  GpuTreeNode *left, *right;
  uint32_t priority;
};

/** A total order: negative, zero (the same node) or positive. */
typedef int (*GpuTreeCompare) (const GpuTreeNode *a, const GpuTreeNode *b);

typedef struct {
  GpuTreeNode *root;
  GpuTreeCompare compare;
  size_t n;
  uint32_t seed;
} GpuTree;

void gpu_tree_init (GpuTree *tree, GpuTreeCompare compare);
void gpu_tree_insert (GpuTree *tree, GpuTreeNode *node);
/** @node must be in the tree, with what it is compared by unchanged since it was inserted. */
void gpu_tree_remove (GpuTree *tree, GpuTreeNode *node);
/** Returns: (nullable): the lowest node. */
GpuTreeNode *gpu_tree_first (const GpuTree *tree);
/** Returns: (nullable): the lowest node that is not below @probe, which need not be in the tree. */
GpuTreeNode *gpu_tree_lower_bound (const GpuTree *tree, const GpuTreeNode *probe);
/** Returns: (nullable): the lowest node above @node. */
GpuTreeNode *gpu_tree_next (const GpuTree *tree, const GpuTreeNode *node);
/** Whether order, heap property and count hold; for tests. */
bool gpu_tree_is_valid (const GpuTree *tree);
