package dev.taskyard;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.tomlj.Toml;
import org.tomlj.TomlParseResult;
import org.tomlj.TomlTable;

/**
 * What a context file or the user's configuration holds.
 *
 * @param contexts by name
 * @param current the name of the context to use; empty if {@code unnamed} is
 * @param unnamed values outside of a context
 */
record ContextFile(Map<String, Map<String, String>> contexts, String current, Map<String, String> unnamed) {

  Map<String, String> chosen() {
    return current.isEmpty() ? unnamed : contexts.get(current);
  }

  /** The user's configuration, which holds contexts by name. */
  static Path config(Map<String, String> environment) {
    return folder(environment, "XDG_CONFIG_HOME", ".config").resolve("taskyard/config.toml");
  }

  static Path folder(Map<String, String> environment, String variable, String belowHome) {
    String home = orElse(environment.get("HOME"), System.getProperty("user.home"));
    return Path.of(orElse(environment.get(variable), Path.of(home, belowHome).toString()));
  }

  private static String orElse(String value, String otherwise) {
    return value == null || value.isEmpty() ? otherwise : value;
  }

  /** Why a file may hold what others want; empty if only its owner can have written it. */
  static String distrust(Path file) {
    try {
      int owner = (int) Files.getAttribute(file, "unix:uid");
      int self = (int) Files.getAttribute(Path.of("/proc/self"), "unix:uid", LinkOption.NOFOLLOW_LINKS);
      if (owner != self && owner != 0) {
        return file + " belongs to user " + owner + ", who could send your keys elsewhere; remove it";
      }
      if (((int) Files.getAttribute(file, "unix:mode") & 0022) != 0) {
        return file + " can be written by others, who could send your keys elsewhere: chmod go-w " + file;
      }
      return "";
    } catch (IOException error) {
      return file + " cannot be read (" + error + "); correct or remove it";
    }
  }

  /** Throws {@link ContextException} if the file is damaged. */
  static ContextFile read(Path file) {
    TomlParseResult parsed;
    try {
      parsed = Toml.parse(file);
    } catch (IOException error) {
      throw new ContextException(file + " cannot be read (" + error + "); correct or remove it");
    }
    if (parsed.hasErrors()) {
      throw new ContextException(file + " cannot be read (" + parsed.errors().get(0) + "); correct or remove it");
    }
    Map<String, Map<String, String>> contexts = new TreeMap<>();
    Map<String, Object> unnamed = new HashMap<>(parsed.toMap());
    Object tables = unnamed.remove("contexts");
    if (tables != null) {
      contexts.putAll(contextsOf(file, tables));
    }
    Object current = unnamed.remove("current");
    boolean known = current == null || current.equals("") || (current instanceof String && contexts.containsKey(current));
    if (!known) {
      throw new ContextException(
          file + ": current = '" + current + "' names no context; use " + String.join(", ", contexts.keySet()));
    }
    return new ContextFile(contexts, current == null ? "" : (String) current, checked(unnamed, file.toString()));
  }

  private static Map<String, Map<String, String>> contextsOf(Path file, Object tables) {
    Map<String, Map<String, String>> contexts = new TreeMap<>();
    Map<String, Object> named = tables instanceof TomlTable table ? table.toMap() : Map.of("", "");
    named.forEach(
        (name, one) -> {
          if (!(one instanceof TomlTable table)) {
            throw new ContextException(file + ": contexts must be tables, such as [contexts.production]");
          }
          contexts.put(name, checked(table.toMap(), file + ": contexts." + name));
        });
    return contexts;
  }

  private static Map<String, String> checked(Map<String, Object> values, String where) {
    TreeSet<String> allowed = new TreeSet<>(TaskyardContext.VARIABLES.keySet());
    allowed.addAll(List.of("gateway", "expire_time"));
    Map<String, String> read = new HashMap<>();
    values.forEach(
        (name, value) -> {
          if (!allowed.contains(name)) {
            throw new ContextException(
                where + ": unknown setting '" + name + "'; use " + String.join(", ", allowed));
          }
          if (!(value instanceof String text)) {
            throw new ContextException(where + ": " + name + " = " + value + " must be a text in quotes");
          }
          if (!text.isEmpty()) {
            read.put(name, text);
          }
        });
    return read;
  }
}
