/** The commands and flags of the program, with their help texts. docs/reference/cli.md is generated from them. */

/** Flags that take a value, each with the placeholder of its value and its help text. */
export const VALUE_FLAGS = {
  config: ["FILE", "Configuration file (default: SLUICE_CONFIG, else ./sluice.jsonc if it exists)"],
  store: [
    "ADDRESS",
    "Keys and ledger: sqlite:PATH, memory: or postgres://USER:PASSWORD@HOST/DATABASE (SLUICE_STORE)",
  ],
  "limits-store": ["ADDRESS", "Counters of limits: memory: or redis://:PASSWORD@HOST (SLUICE_LIMITS_STORE)"],
  hostname: ["NAME", "Address to listen on; 0.0.0.0 listens on every interface (SLUICE_HOSTNAME)"],
  port: ["N", "Port to listen on; 0 chooses a free one (SLUICE_PORT)"],
  "admin-port": ["N", "Port of the admin side, if it has its own (SLUICE_ADMIN_PORT)"],
  group: ["GROUP", "Group of the key"],
  from: ["PROTOCOL", "Protocol of the request body: chat, responses, messages or gemini"],
  to: ["PROTOCOL", "Protocol of the upstream: chat, responses, messages or gemini"],
  vendor: ["VENDOR", "Vendor of the upstream (default: the usual one of the protocol)"],
  expires: ["WHEN", "A duration such as 30d, or a date such as 2027-01-01"],
  models: ["IDS", 'Models it may use, such as "acme/*,beta/one"'],
  endpoints: ["NAMES", 'Endpoints it may call, such as "chat,models"'],
  ips: ["NETWORKS", 'Client addresses it is valid for, such as "10.0.0.0/8,2001:db8::1"'],
  rpm: ["N", "Maximum requests per minute, instead of the group's key_limits"],
  tpm: ["N", "Maximum tokens per minute, instead of the group's key_limits"],
  concurrency: ["N", "Maximum concurrent requests, instead of the group's key_limits"],
  budget: ["USD", "Budget of each period, instead of the group's key_budget"],
  period: ["PERIOD", "Period of the budget: day, week, month or total"],
  "user-budget": ["USD", "Budget of each end user in each period, instead of the group's user_budget"],
  "user-period": ["PERIOD", "Period of the budget of each end user: day, week, month or total"],
  "require-user": ["yes|no", "Whether requests that name no end user are refused; otherwise they share one budget"],
  scope: ["SCOPE", "Only budgets of this scope: group, key or user"],
  overlap: ["TIME", "How long the old secret stays valid, such as 90s or 30d (default: 24h)"],
  since: ["WHEN", "Start: a date such as 2027-01-01, or a duration before now such as 7d (default: this month)"],
  until: ["WHEN", "End, exclusive: a date, or a duration before now (default: the end of today)"],
  endpoint: ["NAME", "Only this endpoint, such as chat or images.edits"],
  status: ["STATUS", "Only this status, such as 429, or 4xx"],
  reason: ["CODE", "Only requests refused or failed for this reason, such as limit or upstream_timeout"],
  "min-cost": ["USD", "Only requests that cost at least this amount"],
  "min-ms": ["N", "Only requests that took at least this many milliseconds"],
  sort: ["ORDER", "time (default), cost or duration; the newest, most expensive or longest first"],
  limit: ["N", "Maximum number of requests, up to 1000 (default: 50)"],
  cursor: ["CURSOR", "Continue after this page"],
  always: ["FAULT", "Fault of every answer, such as status:429"],
  month: ["MONTH", "A whole month by UTC, such as 2026-10"],
  by: ["WHAT", 'Sum up by key (default), group, model, day, user, tag, two of them such as "group,model", or upstream'],
  user: ["USER", "Only this end user"],
  tag: ["TAG", "Only requests with this tag"],
  upstream: ["NAME", "Only this upstream; needs --by upstream"],
  invoice: ["FILE", "Compare with this invoice of the upstream; needs --upstream"],
  prices: ["FILE", "Prices of the upstream, where they differ from the catalog's"],
  tolerance: ["PERCENT", "How much an invoice may differ, such as 0.1% (default: 0%)"],
  key: ["KEY", "API key of the gateway"],
  model: ["MODEL", "Model to test with"],
  "image-model": ["MODEL", "Image model to test with"],
  "embedding-model": ["MODEL", "Embedding model to test with"],
  "rerank-model": ["MODEL", "Rerank model to test with"],
  only: [
    "PARTS",
    'Parts to test, such as "chat,models": models, chat, responses, messages, gemini, images, embeddings, rerank',
  ],
  "key-env": ["NAME", "Environment variable that holds the upstream's key (default: such as OPENAI_API_KEY)"],
  "base-url": ["URL", "Address of the upstream (default: the vendor's own)"],
  url: ["URL", "Public address of the gateway: also check what is in front of it"],
} as const satisfies Record<string, readonly [placeholder: string, help: string]>;

/** Flags without a value, with their help texts. */
export const SWITCHES = {
  json: "Print JSON",
  changes: "Show the log of changes by operators, the latest first, instead",
  catalog: "Print a file for `catalog` of the configuration, and its changes",
  csv: "Print CSV",
  "last-month": "The previous month, by UTC",
  today: "Today, by UTC",
  yesterday: "Yesterday, by UTC",
  exact: "Print amounts with all their decimals in tables, too",
  failed: "Only requests that failed, were refused or lost",
  follow: "Print requests as they end, until the command is stopped",
  "report-only": "Only report exceeded limits; refuse nothing",
  enforce: "Enforce limits that were only reported",
  force: "Replace the file if it exists",
  print: "Print the configuration instead of writing a file",
  strict: "Fail if there is a warning",
  long: "Also test 90 seconds of silence on a stream",
} as const;

/** A flag that takes a value. */
export type ValueFlag = keyof typeof VALUE_FLAGS;

/** A flag without a value. */
export type Switch = keyof typeof SWITCHES;

/** Any flag. */
export type Flag = ValueFlag | Switch;

/** Syntax of a command. */
export interface CommandSyntax {
  /** Placeholder of the only operand; absent: the command takes none. */
  operand?: string;
  /** True if the operand may be left out; absent: it may not. */
  isOptional?: boolean;
  flags: readonly Flag[];
  /** Description in one line. */
  about: string;
  /** Complete command lines. */
  examples: readonly [string, ...string[]];
  /** Help texts of flags that mean something else for this command. */
  help?: Partial<Record<Flag, string>>;
}

/** Flags of commands that need the whole configuration. */
const CONFIG_FLAGS: readonly Flag[] = ["config", "store", "limits-store", "hostname", "port", "admin-port"];
const STORE_FLAGS: readonly Flag[] = ["config", "store"];
const RULE_FLAGS: readonly Flag[] = [
  ...["group", "expires", "models", "endpoints", "ips"] as const,
  ...["rpm", "tpm", "concurrency", "report-only", "budget", "period"] as const,
  ...["user-budget", "user-period", "require-user"] as const,
];

/** All commands, in the order of the help. */
export const COMMANDS = {
  "serve": {
    flags: CONFIG_FLAGS,
    about: "Start the gateway (the default command)",
    examples: ["sluice", "sluice serve --config /etc/sluice/sluice.jsonc --port 8080"],
  },
  "init": {
    flags: ["config", "vendor", "key-env", "base-url", "models", "force", "print"],
    about: "Write a first configuration for one vendor; asks for values that no flag sets",
    examples: ["sluice init", "sluice init --vendor anthropic --models 'anthropic/claude-*'"],
    help: {
      config: "File to write (default: sluice.jsonc)",
      vendor: "Vendor, such as openai, anthropic or ollama",
      models: 'Models of the vendor, such as "gpt-5,openai/o3*" (default: all of the catalog)',
    },
  },
  "keys add": {
    operand: "NAME",
    flags: [...STORE_FLAGS, ...RULE_FLAGS],
    about: "Create an API key and print it once",
    examples: [
      "sluice keys add ci --group team --expires 90d",
      "sluice keys add web --rpm 60 --budget 5 --period day --models 'acme/*'",
    ],
  },
  "keys list": {
    flags: [...STORE_FLAGS, "json"],
    about: "List the API keys of the store",
    examples: ["sluice keys list", "sluice keys list --json"],
  },
  "keys show": {
    operand: "NAME_OR_ID",
    flags: [...STORE_FLAGS, "json"],
    about: "Show a key and its rules",
    examples: ["sluice keys show ci"],
  },
  "keys change": {
    operand: "NAME_OR_ID",
    flags: [...STORE_FLAGS, ...RULE_FLAGS, "enforce"],
    about: "Change the group, expiry or rules of a key; the value unset removes a setting",
    examples: ["sluice keys change ci --rpm 120", "sluice keys change ci --budget unset --expires unset"],
  },
  "keys disable": {
    operand: "NAME_OR_ID",
    flags: STORE_FLAGS,
    about: "Refuse a key until it is enabled again",
    examples: ["sluice keys disable ci"],
  },
  "keys enable": {
    operand: "NAME_OR_ID",
    flags: STORE_FLAGS,
    about: "Accept a disabled key again",
    examples: ["sluice keys enable ci"],
  },
  "keys revoke": {
    operand: "NAME_OR_ID",
    flags: STORE_FLAGS,
    about: "Revoke a key permanently",
    examples: ["sluice keys revoke key_FJJUXxbndaOn"],
  },
  "keys rotate": {
    operand: "NAME_OR_ID",
    flags: [...STORE_FLAGS, "overlap"],
    about: "Give a key a new secret and print it once; the old one stays valid for a limited time",
    examples: ["sluice keys rotate ci --overlap 7d"],
  },
  "keys export": {
    flags: STORE_FLAGS,
    about: "Print all keys as JSON lines, with hashes instead of secrets, for keys import",
    examples: ["sluice keys export --store sqlite:data/sluice.db > keys.jsonl"],
  },
  "keys import": {
    flags: STORE_FLAGS,
    about: "Add exported keys from standard input to the store; existing keys are not changed",
    examples: ["sluice keys import --store postgres://sluice@db.example.com/sluice < keys.jsonl"],
  },
  "budgets": {
    flags: [...STORE_FLAGS, "scope", "group", "key", "user", "limit", "exact", "json", "csv"],
    about: "Show the budgets of groups, keys and end users: spent, held, left, and when they reset",
    examples: ["sluice budgets", "sluice budgets --key app --user u-17", "sluice budgets --csv > budgets.csv"],
    help: {
      group: "Only this group, its keys and their end users",
      key: "Only this key, by its name or id, and its end users",
      user: "Only this end user of the key",
      limit: "Maximum number of end users, up to 1000: those who spent most (default: 20)",
    },
  },
  "usage": {
    flags: [
      ...STORE_FLAGS,
      ...["since", "until", "month", "last-month", "today", "yesterday"] as const,
      ...["by", "group", "model", "key", "user", "tag", "exact", "json", "csv"] as const,
      ...["upstream", "invoice", "prices", "tolerance"] as const,
    ],
    about: "Show usage and cost of a period, or compare them with an upstream's invoice",
    examples: [
      "sluice usage --since 30d --by group",
      "sluice usage --last-month --by group,model --csv > bill.csv",
      "sluice usage --today --key ci --by user",
      "sluice usage --by upstream --upstream openai --invoice invoice.csv",
    ],
    help: { group: "Only this group", model: "Only this model", key: "Only this key, by its name or id" },
  },
  "requests": {
    flags: [
      ...[...STORE_FLAGS, "since", "until", "key", "group", "model", "upstream", "endpoint", "status"] as const,
      ...["failed", "reason", "user", "tag", "min-cost", "min-ms", "sort", "limit", "cursor"] as const,
      ...["follow", "json", "csv"] as const,
    ],
    about: "Find requests: the newest, most expensive or longest, or those that failed",
    examples: [
      "sluice requests --failed --since 1d",
      "sluice requests --key ci --sort cost --limit 10",
      "sluice requests --follow --group team",
    ],
    help: {
      since: "Start: a date such as 2027-01-01, or a duration before now such as 7d (default: all that the ledger has)",
      until: "End, exclusive: a date, or a duration before now (default: none)",
      key: "Only this key, by name or id",
      group: "Only this group",
      model: "Only this model",
      upstream: "Only requests whose last attempt went to this upstream",
    },
  },
  "explain": {
    operand: "REQUEST_ID",
    flags: [...STORE_FLAGS, "json"],
    about: "Show a request and how its price adds up",
    examples: ["sluice explain req_f2325b96ca8464c6000003"],
  },
  "audit": {
    flags: [...STORE_FLAGS, "changes", "limit", "cursor", "json"],
    about: "Recalculate the whole ledger and list every difference, or show who changed what",
    help: { limit: "Maximum number of changes, up to 1000 (default: 50)" },
    examples: ["sluice audit", "sluice audit --store sqlite:data/backup.db", "sluice audit --changes --limit 10"],
  },
  "models list": {
    flags: ["config", "json"],
    about: "List the models whose data and prices ship with this release",
    examples: ["sluice models list"],
  },
  "models show": {
    operand: "ID",
    flags: ["config"],
    about: "Show the data of one of these models, with date and source",
    examples: ["sluice models show openai/gpt-5"],
  },
  "models diff": {
    flags: ["config", "json"],
    about: "Show where the configured models differ from the catalog of this release",
    examples: ["sluice models diff"],
  },
  "models import": {
    operand: "FILE",
    flags: ["config", "json", "catalog", "only"],
    about: "Show where the configured models differ from LiteLLM's or models.dev's list; changes nothing",
    help: {
      json: "Print JSON, with rows for the configuration",
      only: 'With --catalog: only these models, new ones included, such as "openai/*"',
    },
    examples: [
      "sluice models import model_prices_and_context_window.json",
      "sluice models import api.json --catalog --only 'openai/gpt-6*' > catalog.json",
    ],
  },
  "prune": {
    flags: STORE_FLAGS,
    about: "Delete requests older than ledger.keep_days now; daily totals are kept",
    examples: ["sluice prune"],
  },
  "backup": {
    operand: "FILE",
    flags: STORE_FLAGS,
    about: "Copy the store to a new file; the gateway may be running",
    examples: ["sluice backup data/backup.db"],
  },
  "check": {
    flags: [...CONFIG_FLAGS, "json", "strict"],
    about: "Check the configuration and show what it would serve",
    examples: ["sluice check", "sluice check --config new.jsonc --strict"],
  },
  "doctor": {
    flags: [...CONFIG_FLAGS, "json", "url", "key", "model", "long"],
    about: "Look for problems: files, clock, stores, upstreams, and with --url proxies in front",
    help: { key: "API key of the gateway at --url", model: "Model to test streams with (default: sluice/echo)" },
    examples: ["sluice doctor", "sluice doctor --url https://llm.example.com --key sk-sluice-…"],
  },
  "alerts test": {
    flags: ["config"],
    about: "Send a test alert to the webhook of the configuration, and show the answer",
    examples: ["sluice alerts test"],
  },
  "conform": {
    operand: "URL",
    flags: ["key", "model", "image-model", "embedding-model", "rerank-model", "only", "concurrency", "json"],
    about: "Test any gateway against the protocols",
    help: {
      key: "API key of the gateway (SLUICE_CONFORM_KEY)",
      concurrency: "Concurrent checks, 1 to 32 (default: 4)",
    },
    examples: ["sluice conform http://127.0.0.1:8790 --key sk-sluice-… --model acme/assistant --only chat,models"],
  },
  "fault": {
    flags: ["hostname", "port", "always"],
    about: "Start an upstream that fails on request, to rehearse failures",
    help: {
      hostname: "Address to listen on (default: 127.0.0.1)",
      port: "Port to listen on; 0 chooses a free one (default: 8795)",
    },
    examples: ["sluice fault --port 8795 --always status:429"],
  },
  "translate": {
    flags: ["config", "from", "to", "vendor"],
    about: "Show what an upstream would receive for the request body on standard input",
    examples: ["sluice translate --from chat --to messages < request.json"],
  },
  "console": {
    flags: CONFIG_FLAGS,
    about: "Print a sign-in link for the console of the gateway that runs on this machine",
    examples: ["sluice console", "sluice console --port 8080"],
  },
  "health": {
    flags: CONFIG_FLAGS,
    about: "Check whether the gateway of this configuration is alive",
    examples: ["sluice health --port 8790"],
  },
  "help": {
    operand: "COMMAND",
    isOptional: true,
    flags: [],
    about: "Show this text, or the flags of a command",
    examples: ["sluice help keys add"],
  },
  "version": { flags: [], about: "Show the version", examples: ["sluice version"] },
} as const satisfies Record<string, CommandSyntax>;

/** A command's name. */
export type CommandName = keyof typeof COMMANDS;

/** Returns whether a flag takes no value. */
export function isSwitch(flag: Flag): flag is Switch {
  return Object.hasOwn(SWITCHES, flag);
}

/** Returns whether a word is the first of commands with two words, such as `keys`. */
export function isFamily(word: string): boolean {
  return Object.keys(COMMANDS).some((name) => name.startsWith(`${word} `));
}

/** Returns whether a text is the name of a command. */
export function isCommand(text: string): text is CommandName {
  return Object.hasOwn(COMMANDS, text);
}
