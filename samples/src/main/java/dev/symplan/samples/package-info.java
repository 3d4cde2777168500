/** Programs that use Symplan from Java. */
@NullMarked
package dev.symplan.samples;

import org.jspecify.annotations.NullMarked;
