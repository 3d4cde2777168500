package dev.symplan.ir.aten;

import dev.symplan.ir.op.InferRule;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTrait;
import java.util.Arrays;
import java.util.function.Function;
import java.util.stream.Stream;

/** Ops that share a rule. */
final class Table {
  private Table() {}

  /** {@return an op for each line, which is its schema} */
  static Stream<OpSpec> ops(String schemas, InferRule rule, OpTrait... traits) {
    return schemas.lines().map(schema -> OpSpec.of(schema).rule(rule).traits(traits));
  }

  /** {@return an op with one result for each line, which is its schema} */
  static Stream<OpSpec> single(String schemas, Function<OpCall, OpResult> rule, OpTrait... traits) {
    return ops(schemas, InferRule.single(rule), traits);
  }

  /** {@return an op for each name, which stands for {@code NAME} in {@code schema}} */
  static Stream<OpSpec> named(String names, String schema, InferRule rule, OpTrait... traits) {
    return Arrays.stream(names.strip().split("\\s+"))
        .map(name -> OpSpec.of(schema.replace("NAME", name)).rule(rule).traits(traits));
  }
}
