/** The client keys of the demo, and the traffic of their owners. */
import type { EntryDetails, MeteredEndpoint } from "../../lib/store/ledger.ts";

/** When requests arrive: in office hours, mostly by day, or at night (UTC). */
export type Hours = "office" | "day" | "night";

/** A key and its traffic. */
export interface DemoClient {
  name: string;
  group: string;
  endpoint: MeteredEndpoint;
  /** Models with their shares. */
  models: readonly (readonly [id: string, share: number])[];
  /** Requests on a usual working day. */
  perDay: number;
  hours: Hours;
  /** Median tokens of input and output. */
  input: number;
  output: number;
  /** Part of the input that is read from a cache. */
  cached: number;
  /** Number of end users that its requests name; absent: they name none. */
  users?: number;
  /** Tags, of which each request has one. */
  tags?: readonly string[];
  /** Days before now between which it is used; absent: all of the month. */
  days?: { from: number; until: number };
  state?: "disabled" | "revoked" | "expired";
  /** Percent of its own budget in USD that is used. */
  budgetUsed?: number;
}

/** The keys. */
export const CLIENTS: readonly DemoClient[] = [
  {
    name: "support-bot-eu",
    group: "support",
    endpoint: "chat",
    models: [["borealis/atlas-2-mini", 7], ["open/kestrel-70b", 3]],
    perDay: 150,
    hours: "day",
    input: 1800,
    output: 220,
    cached: 0.6,
    users: 300,
    tags: ["chat-widget", "email"],
  },
  {
    name: "support-bot-us",
    group: "support",
    endpoint: "chat",
    models: [["borealis/atlas-2-mini", 6], ["open/kestrel-70b", 2], ["meridian/lyra-3-small", 2]],
    perDay: 95,
    hours: "day",
    input: 2100,
    output: 260,
    cached: 0.5,
    users: 200,
    tags: ["chat-widget", "phone"],
  },
  {
    name: "ci-review",
    group: "engineering",
    endpoint: "messages",
    models: [["meridian/lyra-3", 1]],
    perDay: 40,
    hours: "office",
    input: 22_000,
    output: 900,
    cached: 0.7,
    tags: ["storefront", "billing", "mobile"],
  },
  {
    name: "alice-laptop",
    group: "engineering",
    endpoint: "responses",
    models: [["borealis/atlas-2", 5], ["borealis/atlas-2-mini", 1]],
    perDay: 36,
    hours: "office",
    input: 48_000,
    output: 1100,
    cached: 0.85,
  },
  {
    name: "bob-laptop",
    group: "engineering",
    endpoint: "messages",
    models: [["meridian/lyra-3", 2], ["meridian/lyra-3-small", 1]],
    perDay: 26,
    hours: "office",
    input: 35_000,
    output: 800,
    cached: 0.8,
  },
  {
    name: "nightly-evals",
    group: "research",
    endpoint: "chat",
    models: [["borealis/atlas-2", 1], ["meridian/lyra-3", 1], ["open/kestrel-70b", 1]],
    perDay: 54,
    hours: "night",
    input: 900,
    output: 700,
    cached: 0,
    tags: ["eval-a", "eval-b"],
    budgetUsed: 97,
  },
  {
    name: "notebooks",
    group: "research",
    endpoint: "chat",
    models: [["meridian/lyra-3-small", 3], ["borealis/atlas-2-mini", 1]],
    perDay: 18,
    hours: "office",
    input: 2600,
    output: 500,
    cached: 0.2,
  },
  {
    name: "search-index",
    group: "default",
    endpoint: "embeddings",
    models: [["borealis/embed-2", 1]],
    perDay: 45,
    hours: "day",
    input: 5200,
    output: 0,
    cached: 0,
  },
  {
    name: "design-team",
    group: "default",
    endpoint: "images.generations",
    models: [["borealis/paint-1", 1]],
    perDay: 5,
    hours: "office",
    input: 60,
    output: 0,
    cached: 0,
  },
  {
    name: "partner-tern",
    group: "partners",
    endpoint: "chat",
    models: [["borealis/atlas-2-mini", 1]],
    perDay: 30,
    hours: "day",
    input: 1300,
    output: 300,
    cached: 0.1,
    users: 40,
    budgetUsed: 100,
  },
  {
    name: "contractor-mara",
    group: "engineering",
    endpoint: "chat",
    models: [["borealis/atlas-2", 1]],
    perDay: 14,
    hours: "office",
    input: 9000,
    output: 600,
    cached: 0.5,
    days: { from: 30, until: 12 },
    state: "disabled",
  },
  {
    name: "old-website",
    group: "default",
    endpoint: "chat",
    models: [["open/kestrel-70b", 1]],
    perDay: 12,
    hours: "day",
    input: 500,
    output: 120,
    cached: 0,
    days: { from: 30, until: 20 },
    state: "revoked",
  },
  {
    name: "summer-intern",
    group: "default",
    endpoint: "chat",
    models: [["borealis/atlas-2-mini", 1]],
    perDay: 6,
    hours: "office",
    input: 800,
    output: 250,
    cached: 0,
    days: { from: 30, until: 15 },
    state: "expired",
  },
];

/** Groups with a monthly budget, and the percentage of it that is used. */
export const GROUP_BUDGETS: Readonly<Record<string, number>> = { engineering: 83, support: 46, research: 91 };

/** Returns whether requests of the client count against a budget. */
export function hasBudget({ group, budgetUsed }: Pick<DemoClient, "group" | "budgetUsed">): boolean {
  return budgetUsed !== undefined || Object.hasOwn(GROUP_BUDGETS, group);
}

/** The id of a client's key. */
export function keyIdOf({ name }: Pick<DemoClient, "name">): string {
  return `key_demo-${name}`;
}

/** The end user of the request. @param below a whole number from 0 up to, not including, the limit */
export function attributionOf(
  { users, tags }: Pick<DemoClient, "users" | "tags">,
  below: (limit: number) => number,
): Pick<EntryDetails, "user" | "tags"> {
  // Few users make most of the requests.
  const user = users === undefined ? undefined : `customer-${1000 + Math.floor(below(users) * below(1000) / 1000)}`;
  const tag = tags?.[below(tags.length)];
  return { ...(user !== undefined && { user }), ...(tag !== undefined && { tags: [tag] }) };
}
