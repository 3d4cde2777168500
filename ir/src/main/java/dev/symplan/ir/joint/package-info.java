/**
 * Several graphs as one: the tensors that one hands to the next, and the graph that runs them in
 * order.
 */
@NullMarked
package dev.symplan.ir.joint;

import org.jspecify.annotations.NullMarked;
