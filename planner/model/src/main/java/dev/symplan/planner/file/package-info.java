/** Files that are written completely or not at all, and JSON that knows its locations. */
@NullMarked
package dev.symplan.planner.file;

import org.jspecify.annotations.NullMarked;
