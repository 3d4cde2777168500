/** Turns a plan into the program of each rank: instructions with addresses, streams and events. */
@NullMarked
package dev.symplan.codegen;

import org.jspecify.annotations.NullMarked;
