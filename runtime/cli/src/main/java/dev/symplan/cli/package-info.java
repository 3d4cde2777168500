/** The {@code symplan} command. */
@NullMarked
package dev.symplan.cli;

import org.jspecify.annotations.NullMarked;
