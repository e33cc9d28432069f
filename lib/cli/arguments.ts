/** What was typed: a command with its operands and flags, or a clear word about why not. */
import { parseArgs } from "node:util";
import { messageOf } from "../errors.ts";

/** Flags that take a value, with what stands for it in the help. */
const VALUES = {
  config: "FILE",
  store: "ADDRESS",
  "limits-store": "ADDRESS",
  hostname: "NAME",
  port: "N",
  "admin-port": "N",
  group: "GROUP",
  from: "PROTOCOL",
  to: "PROTOCOL",
  vendor: "VENDOR",
  expires: "WHEN",
  models: "IDS",
  endpoints: "NAMES",
  ips: "NETWORKS",
  rpm: "N",
  tpm: "N",
  concurrency: "N",
  budget: "USD",
  period: "PERIOD",
  overlap: "TIME",
  since: "WHEN",
  until: "WHEN",
  always: "FAULT",
  by: "WHAT",
  upstream: "NAME",
  invoice: "FILE",
  prices: "FILE",
  tolerance: "PERCENT",
  key: "KEY",
  model: "MODEL",
  "image-model": "MODEL",
  only: "PARTS",
  url: "URL",
} as const;

/** Flags that are there or not. */
const SWITCHES = ["json", "csv", "report-only", "enforce", "long"] as const;

/** A flag that takes a value. */
export type ValueFlag = keyof typeof VALUES;

/** A flag that is there or not. */
export type Switch = typeof SWITCHES[number];

type Flag = ValueFlag | Switch;

/** Width of what stands beside the names of the commands in the help. */
const HELP_WIDTH = 90;

interface Syntax {
  /** Word for the one operand; absent: none. */
  operand?: string;
  flags: readonly Flag[];
  /** One line for the help. */
  about: string;
}

const LISTEN: readonly Flag[] = ["config", "store", "limits-store", "hostname", "port", "admin-port"];
const FILES: readonly Flag[] = ["config", "store"];
const RULES: readonly Flag[] = [
  ...["group", "expires", "models", "endpoints", "ips"] as const,
  ...["rpm", "tpm", "concurrency", "report-only", "budget", "period"] as const,
];

/** Every command, in the order of the help. */
export const COMMANDS = {
  "serve": { flags: LISTEN, about: "Start the gateway (also when no command is given)" },
  "keys add": { operand: "NAME", flags: [...FILES, ...RULES], about: "Make an API key and print it, once" },
  "keys list": { flags: [...FILES, "json"], about: "List the API keys of the store" },
  "keys show": { operand: "NAME_OR_ID", flags: [...FILES, "json"], about: "Show a key and what it may do" },
  "keys change": {
    operand: "NAME_OR_ID",
    flags: [...FILES, ...RULES, "enforce"],
    about: "Change what is named; the value unset takes a rule away",
  },
  "keys disable": { operand: "NAME_OR_ID", flags: FILES, about: "Refuse a key until it is enabled again" },
  "keys enable": { operand: "NAME_OR_ID", flags: FILES, about: "Accept a disabled key again" },
  "keys revoke": { operand: "NAME_OR_ID", flags: FILES, about: "End a key for ever" },
  "keys rotate": {
    operand: "NAME_OR_ID",
    flags: [...FILES, "overlap"],
    about: "Give a key a new secret and print it, once; the old one is good for 24h, or --overlap",
  },
  "usage": {
    flags: [...FILES, "since", "until", "by", "upstream", "invoice", "prices", "tolerance", "json", "csv"],
    about: "Show the bill of this month, or since then; by upstream: what it will bill, beside its invoice",
  },
  "explain": { operand: "REQUEST_ID", flags: [...FILES, "json"], about: "Show a request and its price, line by line" },
  "audit": { flags: [...FILES, "json"], about: "Work the whole ledger out anew and tell every difference" },
  "prune": { flags: FILES, about: "Forget single requests older than ledger.keep_days now; sums per day stay" },
  "backup": { operand: "FILE", flags: FILES, about: "Copy the store into a new file, also while the gateway runs" },
  "check": {
    flags: [...LISTEN, "json"],
    about: "Check the configuration: show what it would serve, and every warning",
  },
  "doctor": {
    flags: [...LISTEN, "json", "url", "key", "model", "long"],
    about: "Look for what may go wrong: files, clock, upstreams, and with --url what is in front",
  },
  "conform": {
    operand: "URL",
    flags: ["key", "model", "image-model", "only", "concurrency", "json"],
    about: "Try any gateway out against the facts of the wire",
  },
  "fault": {
    flags: ["hostname", "port", "always"],
    about: "Start an upstream that misbehaves on request, for rehearsals",
  },
  "translate": {
    flags: ["config", "from", "to", "vendor"],
    about: "Show what an upstream would be sent for the request body on standard input",
  },
  "health": { flags: LISTEN, about: "Ask the gateway of this configuration whether it is alive" },
  "help": { flags: [], about: "Show this text" },
  "version": { flags: [], about: "Show the version" },
} as const satisfies Record<string, Syntax>;

/** A command's name. */
export type CommandName = keyof typeof COMMANDS;

/** A command as it was typed. */
export interface Invocation {
  command: CommandName;
  /** The operand, where the command has one. */
  operand: string;
  values: Partial<Record<ValueFlag, string>>;
  switches: ReadonlySet<Switch>;
}

/** A command line that says nothing the program knows. The message is one line. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** Reads a command line. Without a command, or with a flag first, it is `serve`. @throws {UsageError} */
export function parseArguments(args: readonly string[]): Invocation {
  if (args[0] === "--help" || args[0] === "-h") return readFlags("help", args.slice(1));
  if (args[0] === "--version" || args[0] === "-V") return readFlags("version", args.slice(1));
  if (args[0] === undefined || args[0].startsWith("-")) return readFlags("serve", args);
  const words = args[0] === "keys" && args[1] !== undefined && !args[1].startsWith("-") ? 2 : 1;
  const command = args.slice(0, words).join(" ");
  if (!isCommand(command)) {
    if (asksForHelp(args)) return HELP;
    const names = Object.keys(COMMANDS);
    const near = names.filter((name) => name.startsWith(`${args[0]} `));
    throw new UsageError(`Unknown command "${command}"; known: ${(near.length > 0 ? near : names).join(", ")}`);
  }
  return readFlags(command, args.slice(words));
}

const HELP: Invocation = { command: "help", operand: "", values: {}, switches: new Set() };

function asksForHelp(args: readonly string[]): boolean {
  return args.includes("--help") || args.includes("-h");
}

function isCommand(text: string): text is CommandName {
  return Object.hasOwn(COMMANDS, text);
}

function isSwitch(flag: Flag): flag is Switch {
  return SWITCHES.some((name) => name === flag);
}

function readFlags(command: CommandName, args: readonly string[]): Invocation {
  if (asksForHelp(args)) return HELP;
  const { flags, operand }: Syntax = COMMANDS[command];
  const { values, positionals } = parse(command, { args, flags });
  const [word, extra] = positionals;
  if (operand !== undefined && word === undefined) throw new UsageError(`Expected "${command} ${operand}"`);
  const surplus = operand === undefined ? word : extra;
  if (surplus !== undefined) throw new UsageError(`Unexpected "${surplus}" after "${command}"`);
  const typed = Object.entries(values);
  return {
    command,
    operand: word ?? "",
    values: Object.fromEntries(typed.filter(([, value]) => typeof value === "string")),
    switches: new Set(SWITCHES.filter((name) => values[name] === true)),
  };
}

function parse(command: CommandName, { args, flags }: { args: readonly string[]; flags: readonly Flag[] }) {
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

/** The help: one line per command, with its flags. */
export function helpText(): string {
  const lines = Object.entries<Syntax>(COMMANDS).map(([name, { operand, flags, about }]) => {
    const words = operand === undefined ? name : `${name} ${operand}`;
    const typed = flags.map((flag) => isSwitch(flag) ? `[--${flag}]` : `[--${flag} ${VALUES[flag]}]`);
    return `  ${words.padEnd(24)}${about}\n${wrap(typed).map((line) => `${" ".repeat(26)}${line}\n`).join("")}`;
  });
  return `Sluice: one gateway in front of every model.\n\nUsage: sluice [COMMAND] [FLAGS]\n\n${lines.join("")}
Without --config, SLUICE_CONFIG names the file, else ./sluice.jsonc is read where it exists.
SLUICE_HOSTNAME, SLUICE_PORT, SLUICE_ADMIN_PORT, SLUICE_STORE and SLUICE_LIMITS_STORE stand for the flags of those names.
ADDRESS is sqlite:PATH, memory: (its keys end with the process) or postgres://USER:PASSWORD@HOST/DATABASE,
for --limits-store memory: or redis://:PASSWORD@HOST.
WHEN is a span such as 30d or a day such as 2027-01-01, TIME a span such as 90s, 15m, 24h or 30d.
Spans of --since and --until count back from now. WHAT is key, group, model, day or upstream.
PERCENT is what an invoice may differ by, such as 0.1%; without it nothing.
IDS, NAMES and NETWORKS are lists such as "acme/*,beta/one", "chat,models" or "10.0.0.0/8,2001:db8::1".
PARTS is a list of models, chat, responses, messages and images. SLUICE_CONFORM_KEY stands for the --key of conform.
PERIOD is day, week, month or total. A key's own limits take the place of those that its group gives each key.
`;
}

/** Words in lines that fit beside the names of the commands. */
function wrap(words: readonly string[]): string[] {
  const lines: string[] = [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last === undefined || last.length + word.length >= HELP_WIDTH) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
