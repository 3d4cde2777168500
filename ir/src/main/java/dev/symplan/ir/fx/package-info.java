/**
 * Import of PyTorch FX graphs from the text that {@code print_readable} prints.
 *
 * <p>The package has more than thirty classes because each kind of higher-order op and each part of
 * the text is a class. They share {@link FxFunction} and {@link StatementWriter}.
 */
@NullMarked
package dev.symplan.ir.fx;

import org.jspecify.annotations.NullMarked;
