/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A treap (Seidel and Aragon, "Randomized search trees", 1996): a search tree in which random priorities form a heap,
 * so that it is balanced whatever the order of insertion. Priorities come from a generator of the tree's own, so runs
 * repeat.
 */
#include "tree.h"

void
gpu_tree_init (GpuTree *tree, GpuTreeCompare compare)
{
  *tree = (GpuTree){.compare = compare, .seed = 0x9E3779B9u};
}

/* Marsaglia's xorshift; never 0. */
static uint32_t
next_priority (GpuTree *tree)
{
  tree->seed ^= tree->seed << 13;
  tree->seed ^= tree->seed >> 17;
  tree->seed ^= tree->seed << 5;
  return tree->seed;
}

/* Divides @from into what is below @node and what is above. */
static void
split (const GpuTree *tree, GpuTreeNode *from, const GpuTreeNode *node, GpuTreeNode **below, GpuTreeNode **above)
{
  while (from) {
    if (tree->compare (from, node) < 0) {
      *below = from;
      below = &from->right;
      from = from->right;
    } else {
      *above = from;
      above = &from->left;
      from = from->left;
    }
  }
  *below = *above = NULL;
}

void
gpu_tree_insert (GpuTree *tree, GpuTreeNode *node)
{
  node->priority = next_priority (tree);
  GpuTreeNode **place = &tree->root;
  while (*place && (*place)->priority >= node->priority)
    place = tree->compare (node, *place) < 0 ? &(*place)->left : &(*place)->right;
  split (tree, *place, node, &node->left, &node->right);
  *place = node;
  tree->n++;
}

void
gpu_tree_remove (GpuTree *tree, GpuTreeNode *node)
{
  GpuTreeNode **place = &tree->root;
  while (*place != node)
    place = tree->compare (node, *place) < 0 ? &(*place)->left : &(*place)->right;

  GpuTreeNode *below = node->left, *above = node->right;
  while (below && above) {
    if (below->priority >= above->priority) {
      *place = below;
      place = &below->right;
      below = below->right;
    } else {
      *place = above;
      place = &above->left;
      above = above->left;
    }
  }
  *place = below ? below : above;
  node->left = node->right = NULL;
  tree->n--;
}

GpuTreeNode *
gpu_tree_first (const GpuTree *tree)
{
  GpuTreeNode *node = tree->root;
  while (node && node->left)
    node = node->left;
  return node;
}

GpuTreeNode *
gpu_tree_lower_bound (const GpuTree *tree, const GpuTreeNode *probe)
{
  GpuTreeNode *found = NULL;
  for (GpuTreeNode *node = tree->root; node;) {
    if (tree->compare (node, probe) < 0) {
      node = node->right;
    } else {
      found = node;
      node = node->left;
    }
  }
  return found;
}

GpuTreeNode *
gpu_tree_next (const GpuTree *tree, const GpuTreeNode *node)
{
  GpuTreeNode *found = NULL;
  for (GpuTreeNode *other = tree->root; other;) {
    if (tree->compare (other, node) > 0) {
      found = other;
      other = other->left;
    } else {
      other = other->right;
    }
  }
  return found;
}

static bool
subtree_is_valid (const GpuTree *tree, const GpuTreeNode *node, const GpuTreeNode *low, const GpuTreeNode *high,
                  size_t *n)
{
  if (!node)
    return true;
  (*n)++;
  if ((low && tree->compare (low, node) >= 0) || (high && tree->compare (node, high) >= 0))
    return false;
  if ((node->left && node->left->priority > node->priority) || (node->right && node->right->priority > node->priority))
    return false;
  return subtree_is_valid (tree, node->left, low, node, n) && subtree_is_valid (tree, node->right, node, high, n);
}

bool
gpu_tree_is_valid (const GpuTree *tree)
{
  size_t n = 0;
  return subtree_is_valid (tree, tree->root, NULL, NULL, &n) && n == tree->n;
}
