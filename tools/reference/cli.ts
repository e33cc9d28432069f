/** Renders docs/reference/cli.md from the tables of commands and flags. */
import { COMMANDS, type CommandSyntax } from "../../lib/cli/commands.ts";
import { flagForm, flagHelp, withOperand } from "../../lib/cli/help.ts";
import { code, pageHead, table } from "./markdown.ts";

const INTRO = `
\`sluice COMMAND [FLAGS]\`; without a command, \`sluice serve\`. \`sluice help COMMAND\` shows the same text as this page.
From source, \`sluice\` is \`npx -y deno@2.9.6 task sluice\`.

Results go to standard output, problems and questions to standard error. Exit codes: \`0\` done, \`1\` the command failed,
\`2\` the command line is wrong.

If the configuration has mistakes, \`sluice requests\`, \`explain\`, \`audit\`, \`backup\`, \`keys export\`, \`keys disable\`,
\`enable\`, \`revoke\` and \`rotate\` still work: they need only its \`store\`. \`sluice health\` needs only \`listen\`.
`;

/** Environment variables besides those that the configuration names. */
export const VARIABLES: readonly (readonly [name: string, about: string])[] = [
  ["SLUICE_CONFIG", "Path of the configuration"],
  ["SLUICE_CONFIG_TEXT", "Text of the configuration, for platforms without files"],
  ["SLUICE_HOSTNAME", "As `--hostname`"],
  ["SLUICE_PORT", "As `--port`"],
  ["SLUICE_ADMIN_PORT", "As `--admin-port`"],
  ["SLUICE_STORE", "As `--store`; use it for an address with a password"],
  ["SLUICE_LIMITS_STORE", "As `--limits-store`; use it for an address with a password"],
  ["SLUICE_CONFORM_KEY", "API key for `sluice conform`"],
  ["SLUICE_EPHEMERAL", "On Deno Deploy: `yes` allows a store that is lost with the instance"],
  [
    "DATABASE_URL",
    "On Deno Deploy: Postgres database; also as `PGHOST`, `PGPORT`, `PGDATABASE`, `PGUSER`, `PGPASSWORD`, `PGSSLMODE`",
  ],
  ["REDIS_URL", "On Deno Deploy: Redis server for limits"],
  ["OTEL_DENO", "`true` exports traces and metrics with OpenTelemetry"],
  ["OTEL_EXPORTER_OTLP_ENDPOINT", "Address of the OpenTelemetry collector"],
  ["HTTPS_PROXY", "Proxy for requests to upstreams over `fetch`; also `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`"],
];

/** Renders the page. */
export function cliPage(): string {
  const commands = Object.entries<CommandSyntax>(COMMANDS);
  return [
    pageHead("Command line", INTRO),
    "## Commands\n",
    table(
      ["Command", "Description"],
      commands.map(([name, { about }]) => [`[${code(name)}](#${anchor(name)})`, about]),
    ),
    ...commands.map(([name, syntax]) => section(name, syntax)),
    "## Environment variables\n",
    "Variables that hold secrets have the names that the configuration gives them.\n",
    table(["Variable", "Meaning"], VARIABLES.map(([name, about]) => [code(name), about])),
  ].join("\n");
}

/** Renders the section of a command. */
function section(name: string, syntax: CommandSyntax): string {
  const { flags, about, examples, help = {} } = syntax;
  const rows = flags.map((flag) => [code(flagForm(flag)), help[flag] ?? flagHelp(flag)]);
  const options = rows.length === 0 ? "" : `\n${table(["Flag", "Meaning"], rows)}`;
  return `## ${code(name)}\n\n${about}.\n\n\`\`\`text\nsluice ${
    withOperand(name, syntax)
  }\n\`\`\`\n${options}\n\`\`\`sh\n${examples.join("\n")}\n\`\`\`\n`;
}

function anchor(name: string): string {
  return name.replaceAll(" ", "-");
}
