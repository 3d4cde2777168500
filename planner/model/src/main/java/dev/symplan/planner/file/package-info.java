/** Files that are written whole or not at all, and JSON that knows where it stands. */
@NullMarked
package dev.symplan.planner.file;

import org.jspecify.annotations.NullMarked;
