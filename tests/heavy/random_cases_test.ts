/** All random cases and races of the tests that have only a share of them in `deno task test:all`. */
import "../billing/price_test.ts";
import "../e2e/reload/reload_test.ts";
import "../e2e/request/ambiguous_bodies_test.ts";
import "../e2e/request/budget_endings_test.ts";
import "../e2e/request/caps_test.ts";
import "../json/careful_parser_test.ts";
import "../json/fast_parser_test.ts";
import "../json/parse_test.ts";
import "../json/raw_spans_test.ts";
import "../limits/memory_limiter_test.ts";
import "../limits/redis_limiter_test.ts";
import "../o200k/counter_test.ts";
import "../o200k/pieces_test.ts";
import "../protocols/mutations_test.ts";
import "../protocols/plain_contents_test.ts";
import "../request/spending_plan_test.ts";
import "../upstreams/retrieval/read_vectors_test.ts";
