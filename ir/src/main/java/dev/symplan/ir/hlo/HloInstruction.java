package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.Span;

/**
 * One instruction. Names are without their percent signs.
 *
 * @param operands names of instructions above it; {@code x#0} is a part of the tuple {@code x}
 * @param literal the text in the parentheses of a parameter or constant; empty for others
 */
public record HloInstruction(
    String name,
    HloShape shape,
    String opcode,
    ImmutableList<String> operands,
    String literal,
    HloAttributes attributes,
    Span span) {}
