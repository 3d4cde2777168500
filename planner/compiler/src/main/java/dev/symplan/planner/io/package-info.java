/** Programs, plans and packings as files. */
@NullMarked
package dev.symplan.planner.io;

import org.jspecify.annotations.NullMarked;
