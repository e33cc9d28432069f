import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { COMMANDS, helpText, readArguments, UsageError } from "../../lib/cli/arguments.ts";

Deno.test("readArguments() finds the command, its operand and its flags", () => {
  const cases: [string, string, string, Record<string, string>, boolean][] = [
    ["", "serve", "", {}, false],
    ["serve", "serve", "", {}, false],
    ["--port 0", "serve", "", { port: "0" }, false],
    ["serve --hostname=0.0.0.0 --port=80 --config a.jsonc --store memory:", "serve", "", {
      hostname: "0.0.0.0",
      port: "80",
      config: "a.jsonc",
      store: "memory:",
    }, false],
    ["keys add ci", "keys add", "ci", {}, false],
    ["keys add --group ops ci", "keys add", "ci", { group: "ops" }, false],
    ["keys list --json --store sqlite:a", "keys list", "", { store: "sqlite:a" }, true],
    ["keys revoke key_1", "keys revoke", "key_1", {}, false],
    ["check", "check", "", {}, false],
    ["help", "help", "", {}, false],
    ["--help", "help", "", {}, false],
    ["-h", "help", "", {}, false],
    ["keys add --help", "help", "", {}, false],
    ["--version", "version", "", {}, false],
  ];
  for (const [line, command, operand, values, json] of cases) {
    const args = line === "" ? [] : line.split(" ");
    const read = readArguments(args);
    assertEquals({ ...read, values: { ...read.values } }, { command, operand, values, json }, line);
  }
});

Deno.test("readArguments() says in one line what it does not know", () => {
  const cases: [string, string][] = [
    ["start", 'Unknown command "start"; known: serve, keys add'],
    ["keys", 'Unknown command "keys"'],
    ["keys drop ci", 'Unknown command "keys drop"'],
    ["constructor", 'Unknown command "constructor"'],
    ["serve --prot 1", 'Unknown flag "--prot" of "serve"; known: --config, --store, --hostname, --port'],
    ["-p 1", 'Unknown flag "-p" of "serve"'],
    ["check --group a", 'Unknown flag "--group" of "check"'],
    ["version --json", 'Unknown flag "--json" of "version"; known: none'],
    ["serve now", 'Unexpected "now" after "serve"'],
    ["keys add", 'Expected "keys add NAME"'],
    ["keys add a b", 'Unexpected "b" after "keys add"'],
    ["serve --port", 'Cannot read the flags of "serve"'],
    ["keys list --json=1", 'Cannot read the flags of "keys list"'],
  ];
  for (const [line, words] of cases) {
    const error = assertThrows(() => readArguments(line.split(" ")), UsageError, words, line);
    assertEquals(error.message.includes("\n"), false, line);
  }
});

Deno.test("the help names every command", () => {
  for (const name of Object.keys(COMMANDS)) assertStringIncludes(helpText(), `  ${name}`);
});
