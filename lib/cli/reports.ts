/** The commands that report on the ledger, by name. */
import type { Config } from "../config.ts";
import type { Invocation } from "./arguments.ts";
import { audit } from "./audit.ts";
import { budgets } from "./budgets.ts";
import { explain } from "./explain.ts";
import { requests } from "./requests.ts";
import { usage } from "./usage.ts";

/** The functions that run these commands. Each returns the exit code. */
export const REPORTS: Readonly<
  Record<
    "audit" | "budgets" | "explain" | "requests" | "usage",
    (invocation: Invocation & { config: Config }) => Promise<number>
  >
> = { audit, budgets, explain, requests, usage };
