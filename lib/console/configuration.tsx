/**
 * The page of the configuration: what is active, how the file differs, warnings, the reload and the checks of `doctor`.
 */
import type { VNode } from "preact";
import type { ConsoleSession } from "../access/console_session.ts";
import { reloadConfiguration, withoutSecrets } from "../admin/config.ts";
import { configDifferences } from "../admin/config_differences.ts";
import { allWarnings } from "../cli/warnings/warnings.ts";
import type { Config } from "../config.ts";
import type { Finding } from "../doctor/finding.ts";
import { runChecks } from "../doctor/run_checks.ts";
import type { Gateway } from "../gateway.ts";
import type { RouteContext } from "../server/router.ts";
import { Cards, Moment, ShortCode, State, Table } from "./format.tsx";
import { CONSOLE, CsrfField, type Page, runForm, showPage } from "./html.tsx";

/** Longest duration of each check of `doctor`, in milliseconds. */
const CHECK_TIMEOUT_MS = 10_000;

/** Longest value that is shown in full, in characters. */
const MAX_VALUE_CHARACTERS = 500;

/** The effect that a reload would have. */
type Preview = Awaited<ReturnType<Gateway["reloader"]["preview"]>>;

/** `GET /admin/console/configuration`. */
export function configurationPage(_request: Request, context: RouteContext): Promise<Response> {
  return showPage(context, async (session) => {
    const { config, reloader, now } = context.gateway;
    const { loaded_at, source, version, last_error } = reloader.status();
    const preview = await reloader.preview();
    const warnings = await allWarnings(preview.outcome === "read" ? preview.loaded : { config }, now());
    return {
      title: "Configuration",
      body: (
        <>
          <Cards cards={[["Source", source], ["Version", version], ["In force since", <Moment iso={loaded_at} />]]} />
          {last_error !== undefined && (
            <div class="notice bad" role="alert">
              <p>
                The latest change cannot be used, since <Moment iso={last_error.at} />:
              </p>
              <ul>{last_error.problems.map((problem) => <li>{problem}</li>)}</ul>
            </div>
          )}
          <h2>The file and the configuration in force</h2>
          <Differences running={config} preview={preview} />
          {session.role === "admin" && <ActionForms session={session} />}
          <h2>Warnings</h2>
          <Table
            columns={["Member", "Warning"]}
            rows={warnings.map(({ path, message }) => [<code>{path}</code>, message])}
            empty="There are none."
          />
          <h2>The configuration in force, without secrets</h2>
          <pre tabIndex={0}>{JSON.stringify(withoutSecrets(config), null, 2)}</pre>
        </>
      ),
    };
  });
}

function ActionForms({ session }: { session: ConsoleSession }): VNode {
  return (
    <p>
      {([["reload", "Reload the file"], ["doctor", "Look for problems"]] as const).map(([action, name]) => (
        <form class="inline" method="post" action={`${CONSOLE}/configuration`}>
          <CsrfField session={session} />
          <input type="hidden" name="action" value={action} />
          <button type="submit" class={action === "reload" ? undefined : "quiet"}>{name}</button>
        </form>
      ))}
    </p>
  );
}

/** Shows the members that a reload would change, and those whose change needs a restart. */
function Differences({ running, preview }: { running: Config; preview: Preview }): VNode {
  if (preview.outcome === "shared") {
    return <p>The nodes share the configuration that is in the store. A reload puts this node's file there.</p>;
  }
  if (preview.outcome === "refused") {
    return (
      <div class="notice bad">
        <p>The file cannot be used:</p>
        <ul>{preview.problems.map((problem) => <li>{problem}</li>)}</ul>
      </div>
    );
  }
  const differences = configDifferences(running, preview.config);
  const same = preview.isNew ? "Only secrets differ." : "The configuration in force is that of the file.";
  return (
    <>
      <Table
        columns={["Member", "Runs", "File"]}
        rows={differences.map(({ path, before, after }) => [
          <code>{path}</code>,
          <MemberValue value={before} />,
          <MemberValue value={after} />,
        ])}
        empty={same}
      />
      {preview.ignored.length > 0 && <p>These members change at the next start: {preview.ignored.join(", ")}.</p>}
    </>
  );
}

function MemberValue({ value }: { value: unknown }): VNode {
  if (value === undefined) return <span class="dim">not set</span>;
  return <ShortCode text={JSON.stringify(value)} max={MAX_VALUE_CHARACTERS} />;
}

/** `POST /admin/console/configuration`: reloads the file, or runs the checks of `doctor`. */
export function changeConfiguration(request: Request, context: RouteContext): Promise<Response> {
  return runForm(request, context, async (fields) => {
    if (fields.get("action") === "doctor") return findingsPage(await runDoctor(context.gateway));
    await reloadConfiguration(context);
    return `${CONSOLE}/configuration`;
  });
}

/** Running checks by configuration. Concurrent requests share them. */
const runningChecks = new WeakMap<Config, Promise<Finding[]>>();

/** Runs the checks of `sluice doctor` in this process. */
function runDoctor({ config, now }: Gateway): Promise<Finding[]> {
  const running = runningChecks.get(config);
  if (running !== undefined) return running;
  const checks = runChecks({
    config,
    now,
    timeoutMs: CHECK_TIMEOUT_MS,
    env: (name) => Deno.env.get(name),
  }).finally(() => runningChecks.delete(config));
  runningChecks.set(config, checks);
  return checks;
}

function findingsPage(findings: readonly Finding[]): Page {
  return {
    title: "Findings",
    body: (
      <>
        <Table
          columns={["Level", "About", "Finding", "Advice"]}
          rows={findings.map(({ level, about, what, advice }) => [<State state={level} />, about, what, advice ?? ""])}
          empty="There are none."
        />
        <p>
          <a href={`${CONSOLE}/configuration`}>Configuration</a>
        </p>
      </>
    ),
  };
}
