/** Prints the folder in which Deno keeps npm packages: `deno info --json | deno run tools/npm_cache.ts`. */
const { npmCache } = JSON.parse(await new Response(Deno.stdin.readable).text());
await Deno.stdout.write(new TextEncoder().encode(`${npmCache}\n`));
