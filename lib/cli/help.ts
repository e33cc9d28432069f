/** Makes the help texts: of the whole program, of a family of commands, and of each command. */
import { COMMANDS, type CommandSyntax, type Flag, isSwitch, SWITCHES, VALUE_FLAGS } from "./commands.ts";

/**
 * Returns the help of a command, or of all commands that begin with a word; without `command`, of the whole program.
 */
export function helpText(command = ""): string {
  const all = Object.entries<CommandSyntax>(COMMANDS);
  const entry = all.find(([name]) => name === command);
  if (entry !== undefined) return commandHelp(...entry);
  const listed = all.filter(([name]) => command === "" || name.startsWith(`${command} `));
  const commands = columns(listed.map(([name, syntax]) => [withOperand(name, syntax), syntax.about]));
  const usage = command === "" ? "sluice [COMMAND] [FLAGS]" : `sluice ${command} COMMAND [FLAGS]`;
  return `Sluice: one gateway in front of every model.

Usage: ${usage}

${commands}
Run "sluice COMMAND --help" for the flags of a command.
`;
}

function commandHelp(name: string, syntax: CommandSyntax): string {
  const { about, examples, flags, help = {} } = syntax;
  const usage = `sluice ${withOperand(name, syntax)}${flags.length === 0 ? "" : " [FLAGS]"}`;
  const rows = flags.map((flag): [string, string] => [flagForm(flag), help[flag] ?? flagHelp(flag)]);
  const flagsText = rows.length === 0 ? "" : `\n${columns(rows)}`;
  return `Usage: ${usage}\n\n${about}\n${flagsText}\nExamples:\n${examples.map((line) => `  ${line}\n`).join("")}`;
}

/** Returns the name of a command as it is used: with its operand, in brackets if that may be left out. */
export function withOperand(name: string, { operand, isOptional }: CommandSyntax): string {
  if (operand === undefined) return name;
  return `${name} ${isOptional === true ? `[${operand}]` : operand}`;
}

/** Returns a flag as it is written, with the name of its value. */
export function flagForm(flag: Flag): string {
  return isSwitch(flag) ? `--${flag}` : `--${flag} ${VALUE_FLAGS[flag][0]}`;
}

/** Returns the help of a flag for the commands that have none of their own. */
export function flagHelp(flag: Flag): string {
  return isSwitch(flag) ? SWITCHES[flag] : VALUE_FLAGS[flag][1];
}

function columns(rows: readonly (readonly [left: string, right: string])[]): string {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}\n`).join("");
}
