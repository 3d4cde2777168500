/**
 * The graph: values, operators, types and process groups. Everything here is immutable and knows
 * nothing of plans or devices.
 */
@NullMarked
package dev.symplan.ir;

import org.jspecify.annotations.NullMarked;
