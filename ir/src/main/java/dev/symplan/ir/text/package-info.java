/** The {@code .graph} language: parser and printer. */
@NullMarked
package dev.symplan.ir.text;

import org.jspecify.annotations.NullMarked;
