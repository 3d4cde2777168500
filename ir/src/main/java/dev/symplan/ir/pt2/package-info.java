/** Import of the archives that {@code torch.export.save} writes, with their weights. */
@NullMarked
package dev.symplan.ir.pt2;

import org.jspecify.annotations.NullMarked;
