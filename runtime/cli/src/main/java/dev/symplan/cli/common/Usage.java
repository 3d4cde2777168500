package dev.symplan.cli.common;

import com.google.common.base.Ascii;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.LinkedHashMultimap;
import java.lang.reflect.Field;
import java.util.Optional;
import picocli.CommandLine;
import picocli.CommandLine.Help;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Model.UsageMessageSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.TypeConversionException;
import picocli.CommandLine.UnmatchedArgumentException;

/** The help of commands: options in groups, and the line that leads from an error to the help. */
public final class Usage {
  private Usage() {}

  /**
   * Sets up a command line that has all its commands.
   *
   * @param choices the types of options whose words are as {@code toString} has them, in any case
   */
  @SafeVarargs
  public static void of(CommandLine line, Class<? extends Enum<?>>... choices) {
    OptionValues.register(line);
    for (var choice : choices) {
      register(line, choice);
    }
    line.setParameterExceptionHandler((wrong, _) -> failed(wrong));
    groupOptions(line);
  }

  private static <E extends Enum<?>> void register(CommandLine line, Class<E> choices) {
    var all = ImmutableList.copyOf(choices.getEnumConstants());
    line.registerConverter(
        choices,
        text ->
            all.stream()
                .filter(choice -> Ascii.equalsIgnoreCase(choice.toString(), text))
                .findFirst()
                .orElseThrow(
                    () ->
                        new TypeConversionException(
                            "expected one of %s but was '%s'".formatted(all, text))));
  }

  private static int failed(ParameterException wrong) {
    var command = wrong.getCommandLine();
    var err = command.getErr();
    // Of a value that should be KEY=VALUE, picocli says "option option".
    err.println(String.valueOf(wrong.getMessage()).replace("option option", "option"));
    UnmatchedArgumentException.printSuggestions(wrong, err);
    err.printf("try '%s --help'%n", command.getCommandSpec().qualifiedName());
    return ExitCode.USAGE;
  }

  private static void groupOptions(CommandLine line) {
    line.getHelpSectionMap().put(UsageMessageSpec.SECTION_KEY_OPTION_LIST, Usage::options);
    line.getSubcommands().values().forEach(Usage::groupOptions);
  }

  /** The command's own options first; a command that has only these needs no headings. */
  private static String options(Help help) {
    var groups = LinkedHashMultimap.<String, OptionSpec>create();
    var all = help.commandSpec().options().stream().filter(option -> !option.hidden()).toList();
    all.stream().filter(o -> heading(o).isEmpty()).forEach(o -> groups.put("Options", o));
    all.forEach(o -> heading(o).ifPresent(heading -> groups.put(heading, o)));
    var text = new StringBuilder();
    groups
        .asMap()
        .forEach(
            (heading, options) ->
                text.append(groups.keySet().size() > 1 ? "%n%s:%n".formatted(heading) : "")
                    .append(
                        help.optionListExcludingGroups(
                            options.stream().toList(),
                            help.createDefaultLayout(
                                all, help.commandSpec().positionalParameters(), help.colorScheme()),
                            help.createDefaultOptionSort(),
                            help.parameterLabelRenderer())));
    return text.toString();
  }

  private static Optional<String> heading(OptionSpec option) {
    return option.userObject() instanceof Field field
        ? Optional.ofNullable(field.getDeclaringClass().getAnnotation(Heading.class))
            .map(Heading::value)
        : Optional.empty();
  }
}
