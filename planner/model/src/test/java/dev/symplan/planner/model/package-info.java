/** Models of the variants' protocols, which spin checks exhaustively. */
@NullMarked
package dev.symplan.planner.model;

import org.jspecify.annotations.NullMarked;
