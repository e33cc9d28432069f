/** Reads the rules of a key from flags. Their values are checked where the key is stored. */
import type { KeyRules } from "../config.ts";
import { readFlags, UsageError } from "./arguments.ts";
import type { Switch, ValueFlag } from "./commands.ts";
import { parseMoment } from "./duration.ts";

/** Flags as they were typed. */
export interface KeyRuleFlags {
  values: Partial<Record<ValueFlag, string>>;
  switches: ReadonlySet<Switch>;
}

/** The value that removes a rule. */
const UNSET = "unset";

const LISTS = ["models", "endpoints", "ips"] as const;

const LIMITS = [["rpm", "requests_per_minute"], ["tpm", "tokens_per_minute"], ["concurrency", "concurrency"]] as const;

/**
 * The rules of a key after these flags; `undefined` if no flag is about rules. Not checked.
 * @throws {UsageError} for a flag with a value of another kind, or about a rule that the key does not have
 */
export function parseKeyRules(
  { values, switches }: KeyRuleFlags,
  present: KeyRules,
): Record<string, unknown> | undefined {
  const lists = LISTS.flatMap((name) => values[name] === undefined ? [] : [[name, readList(values[name])]]);
  const limits = typedLimits({ values, switches }, present.limits);
  const budget = typedBudget(values, present.budget);
  const userBudget = typedUserBudget(values, present.user_budget);
  if (lists.length === 0 && (limits ?? budget ?? userBudget) === undefined) return undefined;
  const rules = { ...present, ...Object.fromEntries(lists), ...limits, ...budget, ...userBudget };
  return Object.fromEntries(Object.entries(rules).filter(([, rule]) => rule !== undefined));
}

/**
 * The expiry that the flag names; `null`: never. `undefined` without the flag.
 * @throws {UsageError} for any other text
 */
export async function parseExpiry(text: string | undefined, now: number): Promise<number | null | undefined> {
  if (text === undefined) return undefined;
  return text === UNSET ? null : await readFlags(() => parseMoment(text, now));
}

/** The rule in an object, with the value `undefined` if it is removed. */
type Typed<Name extends string> = Partial<Record<Name, unknown>> | undefined;

function typedLimits({ values, switches }: KeyRuleFlags, present: KeyRules["limits"]): Typed<"limits"> {
  const limitFlags = LIMITS.flatMap(([flag, name]) =>
    values[flag] === undefined ? [] : [[name, readNumber(flag, values[flag])]]
  );
  const reportOnly = switches.has("report-only");
  if (reportOnly && switches.has("enforce")) throw new UsageError("--report-only and --enforce cannot be combined");
  if (limitFlags.length === 0 && !reportOnly && !switches.has("enforce")) return undefined;
  const { report_only = false, ...all } = { ...present, ...Object.fromEntries(limitFlags) };
  const limits = Object.entries(all).filter(([, limit]) => limit !== undefined);
  if (limits.length === 0 && (reportOnly || switches.has("enforce"))) {
    throw new UsageError("--report-only and --enforce require limits, and the key has none of its own");
  }
  if (limits.length === 0) return { limits: undefined };
  return {
    limits: { ...Object.fromEntries(limits), report_only: reportOnly || report_only && !switches.has("enforce") },
  };
}

function typedBudget({ budget, period }: KeyRuleFlags["values"], present: KeyRules["budget"]): Typed<"budget"> {
  if (budget === undefined && period === undefined) return undefined;
  if (budget === UNSET) return { budget: undefined };
  const usd = budget ?? present?.usd;
  if (usd === undefined) {
    throw new UsageError("--period requires a budget, and the key has none of its own: add --budget");
  }
  const span = period ?? present?.period;
  return { budget: { usd, ...(span !== undefined && { period: span }) } };
}

function typedUserBudget(
  { "user-budget": amount, "user-period": period, "require-user": required }: KeyRuleFlags["values"],
  present: KeyRules["user_budget"],
): Typed<"user_budget"> {
  if (amount === undefined && period === undefined && required === undefined) return undefined;
  if (amount === UNSET) return { user_budget: undefined };
  if (required !== undefined && required !== "yes" && required !== "no") {
    throw new UsageError(`Expected yes or no after --require-user, not "${required}"`);
  }
  const usd = amount ?? present?.usd;
  if (usd === undefined) {
    throw new UsageError("--user-period and --require-user need a budget of end users: add --user-budget");
  }
  return {
    user_budget: {
      ...present,
      usd,
      ...(period !== undefined && { period }),
      ...(required !== undefined && { require_user: required === "yes" }),
    },
  };
}

function readList(text: string): string[] | undefined {
  return text === UNSET ? undefined : text.split(",").map((item) => item.trim());
}

function readNumber(flag: string, text: string): number | undefined {
  if (text === UNSET) return undefined;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new UsageError(`Expected a whole number or "${UNSET}" after --${flag}, not "${text}"`);
}
