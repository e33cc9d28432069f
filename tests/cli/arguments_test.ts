import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import { type Invocation, parseArguments, UsageError } from "../../lib/cli/arguments.ts";
import { type CommandName, COMMANDS, type Switch } from "../../lib/cli/commands.ts";
import { helpText } from "../../lib/cli/help.ts";

Deno.test("parseArguments() finds the command, its operand and its flags", () => {
  const cases: [string, CommandName, string, Invocation["values"], Switch[]][] = [
    ["", "serve", "", {}, []],
    ["serve", "serve", "", {}, []],
    ["--port 0", "serve", "", { port: "0" }, []],
    ["serve --hostname=0.0.0.0 --port=80 --config a.jsonc --store memory:", "serve", "", {
      hostname: "0.0.0.0",
      port: "80",
      config: "a.jsonc",
      store: "memory:",
    }, []],
    ["keys add ci", "keys add", "ci", {}, []],
    ["keys add --group ops ci", "keys add", "ci", { group: "ops" }, []],
    ["keys list --json --store sqlite:a", "keys list", "", { store: "sqlite:a" }, ["json"]],
    ["keys revoke key_1", "keys revoke", "key_1", {}, []],
    ["keys change ci --report-only --rpm 5 --models a/*,b/c", "keys change", "ci", { rpm: "5", models: "a/*,b/c" }, [
      "report-only",
    ]],
    ["keys rotate ci --overlap 0s", "keys rotate", "ci", { overlap: "0s" }, []],
    ["usage --since 7d --by model --csv", "usage", "", { since: "7d", by: "model" }, ["csv"]],
    ["explain req_1 --json", "explain", "req_1", {}, ["json"]],
    ["check", "check", "", {}, []],
    ["help", "help", "", {}, []],
    ["--help", "help", "", {}, []],
    ["-h", "help", "", {}, []],
    ["keys add --help", "help", "keys add", {}, []],
    ["keys add ci --rpm 5 -h", "help", "keys add", {}, []],
    ["keys --help", "help", "keys", {}, []],
    ["--port 0 --help", "help", "serve", {}, []],
    ["help usage", "help", "usage", {}, []],
    ["--version", "version", "", {}, []],
  ];
  for (const [line, command, operand, values, switches] of cases) {
    const args = line === "" ? [] : line.split(" ");
    const read = parseArguments(args);
    assertEquals(read, { command, operand, values, switches: new Set(switches) }, line);
  }
});

Deno.test("parseArguments() reports unknown arguments in one line", () => {
  const cases: [string, string][] = [
    ["start", 'Unknown command "start"; known: serve, init, keys add'],
    ["keys", 'Unknown command "keys"; known: keys add, keys list'],
    ["--help start", 'Unknown command "start"; known: serve, init, keys add'],
    ["help start", 'Unknown command "start"; known: serve, init, keys add'],
    ["start --help", 'Unknown command "start"; known: serve, init, keys add'],
    ["keys drop ci", 'Unknown command "keys drop"'],
    ["constructor", 'Unknown command "constructor"'],
    ["serve --prot 1", 'Unknown flag "--prot" of "serve"; known: --config, --store, --limits-store'],
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
    const error = assertThrows(() => parseArguments(line.split(" ")), UsageError, words, line);
    assertEquals(error.message.includes("\n"), false, line);
  }
});

Deno.test("help lists every command, and the help of a command its flags", () => {
  for (const [name, { flags, examples }] of Object.entries(COMMANDS)) {
    assertStringIncludes(helpText(), `  ${name}`);
    for (const example of examples) {
      assertStringIncludes(helpText(name), `\n  ${example}\n`);
      const words = example.replace(/ [<>].*/, "").replaceAll("'", "").split(" ").slice(1);
      assertEquals(parseArguments(words).command, name, example);
    }
    for (const flag of flags) assertStringIncludes(helpText(name), `\n  --${flag}`);
  }
  assertEquals(helpText("keys").match(/^ {2}keys /gm)?.length, 10);
  assertEquals(
    helpText("explain"),
    `Usage: sluice explain REQUEST_ID [FLAGS]

Show a request and how its price adds up

  --config FILE    Configuration file (default: SLUICE_CONFIG, else ./sluice.jsonc if it exists)
  --store ADDRESS  Keys and ledger: sqlite:PATH, memory: or postgres://USER:PASSWORD@HOST/DATABASE (SLUICE_STORE)
  --json           Print JSON

Examples:
  sluice explain req_f2325b96ca8464c6000003
`,
  );
});
