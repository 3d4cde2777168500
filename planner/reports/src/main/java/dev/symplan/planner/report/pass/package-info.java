/** What each pass made of a program, as files in a folder. */
@NullMarked
package dev.symplan.planner.report.pass;

import org.jspecify.annotations.NullMarked;
