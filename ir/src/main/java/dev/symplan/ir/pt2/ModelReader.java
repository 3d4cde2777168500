package dev.symplan.ir.pt2;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Notes;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.fx.FxExpr;
import dev.symplan.ir.fx.FxType;
import dev.symplan.ir.json.Json;
import dev.symplan.ir.pt2.Model.Range;
import dev.symplan.ir.pt2.Model.Stored;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Reads {@code models/NAME.json}: {@code torch._export.serde.schema.ExportedProgram}. */
final class ModelReader {

  /** Of {@code SCHEMA_VERSION}; the minor number counts changes that readers can ignore. */
  private static final long SCHEMA_MAJOR = 8;

  private static final String HIGHER_ORDER = "torch.ops.higher_order.";

  /** The fields of a graph that define its symbolic names. */
  private static final ImmutableList<String> SYMBOL_TABLES =
      ImmutableList.of("sym_int_values", "sym_float_values", "sym_bool_values");

  /** A line of a Python traceback. */
  private static final Pattern FRAME = Pattern.compile("File \"([^\"]*)\", line (\\d+), in (.*)");

  private static final Pattern WORD = Pattern.compile("[A-Za-z0-9_.]*");

  private static final Optional<FxType> NO_TYPE = Optional.of(FxType.None.NONE);

  private final SourceFile file;
  private final Json root;
  private final Json graph;
  private final DiagnosticSink sink = new DiagnosticSink();
  private final Names names = new Names();
  private final Arguments arguments = new Arguments(names);
  private final Listing listing = new Listing();
  private final ImmutableMap<String, Json> tensors;
  private final ImmutableMap<String, Json> symbols;
  private final ImmutableList.Builder<Stored> stored = ImmutableList.builder();
  private String lastSource = "";

  private ModelReader(SourceFile file, Json root) {
    this.file = file;
    this.root = root;
    this.graph = root.get("graph_module").get("graph");
    this.tensors = graph.get("tensor_values").fields();
    var table = ImmutableMap.<String, Json>builder();
    SYMBOL_TABLES.forEach(name -> graph.find(name).ifPresent(t -> table.putAll(t.fields())));
    this.symbols = table.buildKeepingLast();
  }

  /**
   * {@return the program}
   *
   * @param file the archive, for messages
   * @throws CompileException when the program is malformed, or uses something unsupported
   */
  static Model read(SourceFile file, Json root) {
    var version = root.get("schema_version").get("major").integer();
    if (version != SCHEMA_MAJOR) {
      throw new CompileException(
          Diagnostic.error(
              DiagnosticCode.UNSUPPORTED_VERSION,
              Span.ofFile(file),
              "the program has version %s of torch.export's schema, not %s"
                  .formatted(version, SCHEMA_MAJOR),
              "load it with torch.export.load, and save it again with PyTorch 2.11 to 2.13"));
    }
    return new ModelReader(file, root).model();
  }

  private Model model() {
    var signature = root.get("graph_module").get("signature");
    signature.get("input_specs").items().forEach(this::input);
    graph.get("nodes").items().forEach(this::node);
    var results = ImmutableList.<FxExpr>builder();
    var notes = ImmutableList.<String>builder();
    signature.get("output_specs").items().forEach(spec -> output(spec, results, notes));
    sink.throwIfErrors();
    var function = listing.function(file.name(), results.build(), notes.build());
    return new Model(function, stored.build(), ranges());
  }

  private void unsupported(String message, String hint) {
    sink.report(Diagnostic.error(DiagnosticCode.UNSUPPORTED, Span.ofFile(file), message, hint));
  }

  private void input(Json spec) {
    var kind = spec.union();
    var value = kind.value();
    switch (kind.name()) {
      case "user_input" -> userInput(value.get("arg"));
      case "parameter" -> stored(value, "parameter_name", false);
      case "buffer" -> stored(value, "buffer_name", !value.get("persistent").bool());
      case "tensor_constant" -> stored(value, "tensor_constant_name", true);
      case "constant_input" -> listing.param(names.of(value.get("name").text()), NO_TYPE);
      default ->
          unsupported(
              "an input is a %s".formatted(kind.name()),
              "inputs are tensors and numbers; export without custom objects and effects");
    }
  }

  private void userInput(Json argument) {
    var union = argument.union();
    switch (union.name()) {
      case "as_tensor" -> {
        var name = union.value().get("name").text();
        listing.param(names.of(name), tensorType(name, union.value()));
      }
      case "as_sym_int", "as_sym_float", "as_sym_bool" -> {
        var value = union.value().union();
        if (value.name().equals("as_name")) {
          var name = value.value().text();
          listing.param(names.of(name), symbolType(name, value.value()));
        } else {
          listing.param(names.free("constant"), NO_TYPE);
        }
      }
      case "as_none", "as_int", "as_float", "as_bool", "as_string" ->
          listing.param(names.free("constant"), NO_TYPE);
      default -> throw argument.wrong("an input is of kind '%s'".formatted(union.name()));
    }
  }

  private void stored(Json spec, String nameField, boolean constant) {
    var name = spec.get("arg").get("name");
    var input = names.of(name.text());
    listing.param(input, tensorType(name.text(), name));
    stored.add(new Stored(input, spec.get(nameField).text(), constant));
  }

  private Optional<FxType> tensorType(String name, Json at) {
    @Nullable Json meta = tensors.get(name);
    if (meta == null) {
      throw at.wrong("'%s' is not defined".formatted(name));
    }
    return Optional.of(Types.fxType(meta));
  }

  private Optional<FxType> symbolType(String name, Json at) {
    @Nullable Json value = symbols.get(name);
    if (value == null) {
      throw at.wrong("'%s' is not defined".formatted(name));
    }
    return Optional.of(new FxType.Symbolic(Types.symbolic(value)));
  }

  private void node(Json node) {
    var target = word(node.get("target"));
    if (target.startsWith(HIGHER_ORDER)) {
      var name = target.substring(HIGHER_ORDER.length());
      unsupported(
          "node '%s' calls other graphs: higher_order.%s"
              .formatted(node.find("name").map(Json::text).orElse("?"), name),
          name.startsWith("wrap_with_")
              ? "save program.run_decompositions({}) instead, which writes them out"
              : "export without its cause: control flow, custom autograd functions, flex attention,"
                  + " activation checkpointing");
      return;
    }
    var args = ImmutableList.<FxExpr>builder();
    var keywords = ImmutableMap.<String, FxExpr>builder();
    for (var input : node.get("inputs").items()) {
      var expr = arguments.expr(input.get("arg"));
      boolean positional = input.find("kind").map(kind -> kind.integer() == 1).orElse(false);
      if (positional) {
        args.add(expr);
      } else {
        keywords.put(word(input.get("name")), expr);
      }
    }
    var call = new FxExpr.Call(target, args.build(), keywords.buildKeepingLast(), Span.NONE);
    results(node, call);
  }

  private void results(Json node, FxExpr.Call call) {
    var outputs = node.get("outputs").items();
    if (outputs.size() == 1) {
      var only = outputs.getFirst().union();
      switch (only.name()) {
        case "as_tensor" -> {
          var name = only.value().get("name").text();
          listing.statement(names.of(name), tensorType(name, only.value()), call, notes(node));
          return;
        }
        case "as_sym_int", "as_sym_float", "as_sym_bool" -> {
          var value = only.value().union();
          if (value.name().equals("as_name")) {
            var name = value.value().text();
            // A node that computes a size is not an op of the graph: the comment is for the op
            // below.
            listing.statement(names.of(name), symbolType(name, value.value()), call, Notes.NONE);
          }
          return;
        }
        default -> {}
      }
    }
    var nodeName = node.find("name").map(Json::text).orElse("results");
    var whole = names.free(nodeName);
    listing.statement(whole, Optional.empty(), call, notes(node));
    var root = new FxExpr.Name(whole);
    // The one list that an op gives is the value itself.
    boolean list = outputs.size() == 1;
    for (int i = 0; i < outputs.size(); i++) {
      var output = outputs.get(i).union();
      var at = list ? root : new FxExpr.Index(root, new FxExpr.Int(i));
      switch (output.name()) {
        case "as_tensor" -> {
          // A value without readers has a type only of the device that it was exported on.
          if (!output.value().get("name").text().equals(nodeName + "_unused_" + i)) {
            item(output.value(), at);
          }
        }
        case "as_tensors" -> items(output.value(), at);
        case "as_optional_tensors" -> {}
        case "as_none" -> {}
        default -> throw outputs.get(i).wrong("a result is of kind '%s'".formatted(output.name()));
      }
    }
  }

  private void items(Json tensorsOfList, FxExpr list) {
    var items = tensorsOfList.items();
    for (int i = 0; i < items.size(); i++) {
      item(items.get(i), new FxExpr.Index(list, new FxExpr.Int(i)));
    }
  }

  private void item(Json tensor, FxExpr location) {
    var name = tensor.get("name").text();
    // Results that nothing reads may have no type.
    if (tensors.containsKey(name)) {
      listing.statement(names.of(name), tensorType(name, tensor), location, Notes.NONE);
    }
  }

  /** The innermost line of the user's program, where it is another than the last node's. */
  private Notes notes(Json node) {
    var trace =
        node.find("metadata").flatMap(data -> data.find("stack_trace")).map(Json::text).orElse("");
    var source = innermost(trace);
    if (source.isEmpty() || source.equals(lastSource)) {
      return Notes.NONE;
    }
    var before = lastSource.isEmpty() ? ImmutableList.of(source) : ImmutableList.of("", source);
    lastSource = source;
    return new Notes(before, "");
  }

  /** As torch.fx writes it above a statement. */
  private static String innermost(String trace) {
    int at = trace.lastIndexOf("File \"");
    if (at < 0) {
      return "";
    }
    var lines = trace.substring(at).lines().limit(2).map(String::strip).toList();
    var frame = FRAME.matcher(lines.getFirst());
    if (!frame.matches()) {
      return "";
    }
    var location = "# File: %s:%s in %s".formatted(frame.group(1), frame.group(2), frame.group(3));
    return lines.size() < 2 ? location : location + ", code: " + lines.get(1);
  }

  private void output(
      Json spec, ImmutableList.Builder<FxExpr> results, ImmutableList.Builder<String> notes) {
    var kind = spec.union();
    var argument = kind.value().get("arg");
    switch (kind.name()) {
      case "user_output" -> results.add(arguments.expr(argument));
      case "token" ->
          unsupported("an output is a token", "export without operators that have effects");
      default -> {
        var name = names.of(argument.get("name").text());
        results.add(new FxExpr.Name(name));
        notes.add("# %s: %s".formatted(name, meaning(kind)));
      }
    }
  }

  private static String meaning(Json.Case kind) {
    return switch (kind.name()) {
      case "buffer_mutation" -> "the new value of " + kind.value().get("buffer_name").text();
      case "parameter_mutation" -> "the new value of " + kind.value().get("parameter_name").text();
      case "user_input_mutation" ->
          "the new value of input " + kind.value().get("user_input_name").text();
      case "gradient_to_parameter" ->
          "the gradient of " + kind.value().get("parameter_name").text();
      case "gradient_to_user_input" ->
          "the gradient of input " + kind.value().get("user_input_name").text();
      case "loss_output" -> "the loss";
      default -> kind.name();
    };
  }

  private ImmutableMap<String, Range> ranges() {
    var ranges = ImmutableMap.<String, Range>builder();
    root.find("range_constraints")
        .ifPresent(
            constraints ->
                constraints
                    .fields()
                    .forEach(
                        (symbol, range) ->
                            ranges.put(
                                symbol,
                                new Range(bound(range, "min_val"), bound(range, "max_val")))));
    return ranges.buildOrThrow();
  }

  private static OptionalLong bound(Json range, String field) {
    return range.find(field).map(Json::integer).map(OptionalLong::of).orElse(OptionalLong.empty());
  }

  /** {@return a string of letters, digits, {@code _} and dots} */
  private static String word(Json name) {
    if (!WORD.matcher(name.text()).matches()) {
      throw name.wrong("it is not a name");
    }
    return name.text();
  }
}
