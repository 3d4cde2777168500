/** The parts of graphs: types, values, arguments and process groups. All of them are immutable. */
@NullMarked
package dev.symplan.ir;

import org.jspecify.annotations.NullMarked;
