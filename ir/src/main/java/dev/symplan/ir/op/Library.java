package dev.symplan.ir.op;

import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.CollectiveSpec.Role;
import dev.symplan.ir.op.OpRegistry.Registration;
import java.util.List;

/**
 * A namespace of ops that a program adds, as {@code torch.library.Library}.
 *
 * <pre>{@code
 * Library lib = Library.in(BuiltinOps.registry(), "my_lib");
 * lib.def("exchange(Tensor input) -> Tensor");
 * lib.registerSymmMemArgs("exchange", List.of("input"));
 * }</pre>
 */
public final class Library {
  private final OpRegistry registry;
  private final String namespace;

  private Library(OpRegistry registry, String namespace) {
    this.registry = registry;
    this.namespace = namespace;
  }

  /** A library whose ops only users of {@code registry} see. */
  public static Library in(OpRegistry registry, String namespace) {
    return new Library(registry, namespace);
  }

  /**
   * Adds an op whose result types only annotations give.
   *
   * @param schema in PyTorch's schema language, with or without the namespace
   * @throws IllegalArgumentException when the schema is malformed or the name is taken
   */
  public Registration def(String schema) {
    return registry.define(OpSpec.of(qualified(schema)));
  }

  /** Adds an op with a rule for its result types. */
  public Registration def(String schema, InferRule rule) {
    return registry.define(OpSpec.of(qualified(schema)).rule(rule));
  }

  /**
   * Registers the tensor arguments of an op that must be in symmetric memory. The op's only
   * parameter of type {@code str} names the group, unless {@link #registerGroup} names another one;
   * an op without one is for all ranks.
   *
   * <p>A functional collective then runs only as variants that read its operand from there.
   *
   * @param op the name, with its overload, with or without the namespace
   * @throws IllegalArgumentException when the op or a parameter does not exist, a parameter holds
   *     no tensor, the list is empty, or there are several parameters that could name the group
   */
  public Registration registerSymmMemArgs(String op, List<String> params) {
    requireNames(op, params);
    return registry.replace(name(op), spec -> spec.symmMemArgs(params));
  }

  /**
   * Registers the results of an op that must be in symmetric memory.
   *
   * @param results positions ({@code "0"}) or names of the schema
   * @throws IllegalArgumentException as {@link #registerSymmMemArgs}
   */
  public Registration registerSymmMemResults(String op, List<String> results) {
    requireNames(op, results);
    return registry.replace(name(op), spec -> spec.symmMemResults(results));
  }

  /**
   * Registers an op as a collective. Parameters with PyTorch's names need not be listed. A {@link
   * CollectiveSpec.Foreign} becomes the functional collective of its kind.
   *
   * @throws IllegalArgumentException when the op or a parameter does not exist
   */
  public Registration registerCollective(String op, CollectiveSpec spec) {
    return registry.replace(name(op), old -> old.collective(spec));
  }

  /**
   * Registers the parameter that names the process group of an op with symmetric arguments.
   *
   * @param operand the tensor parameter that the ranks exchange
   */
  public Registration registerGroup(String op, String operand, String group) {
    return registerCollective(
        op, CollectiveSpec.of(Kind.CUSTOM).with(Role.OPERAND, operand).with(Role.GROUP, group));
  }

  private static void requireNames(String op, List<String> names) {
    if (names.isEmpty()) {
      throw new IllegalArgumentException("nothing to register for " + op);
    }
  }

  private OpName name(String op) {
    return OpName.parse(qualified(op));
  }

  private String qualified(String text) {
    int paren = text.indexOf('(');
    var head = paren < 0 ? text : text.substring(0, paren);
    return head.contains("::") ? text : namespace + "::" + text;
  }
}
