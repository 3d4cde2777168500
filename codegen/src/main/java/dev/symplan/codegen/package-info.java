/** From a plan to what each rank executes: instructions with addresses, streams and events. */
@NullMarked
package dev.symplan.codegen;

import org.jspecify.annotations.NullMarked;
