/** Several graphs as one: what one hands to the next, and the graph that runs them in order. */
@NullMarked
package dev.symplan.ir.joint;

import org.jspecify.annotations.NullMarked;
