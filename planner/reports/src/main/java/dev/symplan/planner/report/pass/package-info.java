/** The state of a program after each pass, as files in a folder. */
@NullMarked
package dev.symplan.planner.report.pass;

import org.jspecify.annotations.NullMarked;
