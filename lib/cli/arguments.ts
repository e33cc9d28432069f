/** Parses the command line. */
import { parseArgs } from "node:util";
import type { Config } from "../config.ts";
import { messageOf } from "../errors.ts";
import {
  type CommandName,
  COMMANDS,
  type CommandSyntax,
  type Flag,
  isCommand,
  isFamily,
  isSwitch,
  type Switch,
  SWITCHES,
  type ValueFlag,
} from "./commands.ts";

/** A parsed command line. */
export interface Invocation {
  command: CommandName;
  /** Operand of the command; empty if there is none. */
  operand: string;
  values: Partial<Record<ValueFlag, string>>;
  switches: ReadonlySet<Switch>;
}

/** The flags of a report, and the configuration. */
export interface ReportCommand extends Pick<Invocation, "values" | "switches"> {
  config: Config;
}

/** A wrong command line. The message is one line. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** Runs a function that reads values of flags. @throws {UsageError} if it throws a `RangeError` */
export async function readFlags<Read>(read: () => Read | Promise<Read>): Promise<Read> {
  try {
    return await read();
  } catch (error) {
    throw error instanceof RangeError ? new UsageError(error.message, { cause: error }) : error;
  }
}

/**
 * Parses a command line. Without a command, or if a flag is first, the command is `serve`.
 * @throws {UsageError} if it is wrong
 */
export function parseArguments(args: readonly string[]): Invocation {
  if (args[0] === "--version" || args[0] === "-V") return parseFlags("version", args.slice(1));
  if (args[0] === "help" || args[0] === "--help" || args[0] === "-h") return helpFor(args.slice(1));
  if (args[0] === undefined || args[0].startsWith("-")) return parseFlags("serve", args);
  const words = isFamily(args[0]) && args[1] !== undefined && !args[1].startsWith("-") ? 2 : 1;
  const command = args.slice(0, words).join(" ");
  if (asksForHelp(args)) return helpFor(args.slice(0, words));
  if (!isCommand(command)) throw unknownCommand(command);
  return parseFlags(command, args.slice(words));
}

function helpFor(words: readonly string[]): Invocation {
  const operand = words.filter((word) => !word.startsWith("-")).join(" ");
  if (operand !== "" && !isFamily(operand) && !isCommand(operand)) throw unknownCommand(operand);
  return { command: "help", operand, values: {}, switches: new Set() };
}

function unknownCommand(command: string): UsageError {
  const names = Object.keys(COMMANDS);
  const [first = ""] = command.split(" ");
  const sameFamily = names.filter((name) => name.startsWith(`${first} `));
  const known = sameFamily.length > 0 ? sameFamily : names;
  return new UsageError(`Unknown command "${command}"; known: ${known.join(", ")}`);
}

function asksForHelp(args: readonly string[]): boolean {
  return args.includes("--help") || args.includes("-h");
}

function parseFlags(command: CommandName, args: readonly string[]): Invocation {
  if (asksForHelp(args)) return helpFor([command]);
  const { flags, operand }: CommandSyntax = COMMANDS[command];
  const { values, positionals } = parseNodeArgs(command, { args, flags });
  const [word, extra] = positionals;
  if (operand !== undefined && word === undefined) throw new UsageError(`Expected "${command} ${operand}"`);
  const surplus = operand === undefined ? word : extra;
  if (surplus !== undefined) throw new UsageError(`Unexpected "${surplus}" after "${command}"`);
  const entries = Object.entries(values);
  return {
    command,
    operand: word ?? "",
    values: Object.fromEntries(entries.filter(([, value]) => typeof value === "string")),
    switches: new Set((Object.keys(SWITCHES) as Switch[]).filter((name) => values[name] === true)),
  };
}

function parseNodeArgs(command: CommandName, { args, flags }: { args: readonly string[]; flags: readonly Flag[] }) {
  const options = Object.fromEntries(
    flags.map((flag) => [flag, { type: isSwitch(flag) ? "boolean" as const : "string" as const }]),
  );
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
  } catch (error) {
    const message = messageOf(error);
    const unknown = /^Unknown option '([^']*)'/.exec(message)?.[1];
    const known = flags.length === 0 ? "none" : flags.map((flag) => `--${flag}`).join(", ");
    throw new UsageError(
      unknown === undefined
        ? `Cannot read the flags of "${command}": ${message.split("\n")[0]}`
        : `Unknown flag "${unknown}" of "${command}"; known: ${known}`,
    );
  }
}
