#pragma once

// The generators: pure functions from sizes to a Schedule, one file each in src/generators. P is
// the number of ranks, M of microbatches, V of stages (chunks) per rank. F, I, W are the times of a
// forward, input gradient and weight gradient of one microbatch on all the stages of one rank, and
// B = I + W. Bubbles assume equal stages and no transfer time; activations count one microbatch on
// one chunk. Every function throws InputError that names the violated rule and the nearest sizes
// that fit.

#include <string>
#include <vector>

#include "pipewright/plan/schedules/schedule.hpp"

namespace pipewright::plan {

/// GPipe (Huang et al., NeurIPS 2019): all forwards, then all backwards. Every rank keeps M
/// activations. Bubble (P - 1)(F + B). Several stages may share a rank: `make_on_placement`.
Schedule make_gpipe(int ranks, int microbatches);

/// 1F1B with flush (Narayanan et al., ICML 2021). Rank r keeps at most min(M, P - r) activations.
/// Bubble (P - 1)(F + B). M may be less than P.
Schedule make_1f1b(int ranks, int microbatches);

/// Interleaved 1F1B (Narayanan et al., SC 2021, section 2.2), stage s on rank s mod P. Microbatches
/// go in rounds of N = M / max(1, M div P) through one chunk after the other, so M must be a
/// multiple of the number of rounds. Bubble (P - 1)(F + B)/V when P divides M; rank r then keeps
/// min(M V, P V + P - 1 - 2r) activations.
Schedule make_interleaved_1f1b(int ranks, int microbatches, int chunks);

/// Interleaved 1F1B in Megatron-LM's form: rounds of `group` microbatches, P <= group <= M, with a
/// last round that is empty or has at least P (0: group = P). One chunk gives plain 1F1B. Rank r
/// keeps at most min(M V, (V - 1) group + 2(P - 1 - r) + 1) activations: a larger group trades
/// memory for time to transfer.
Schedule make_megatron_interleaved(int ranks, int microbatches, int chunks, int group = 0);

/// Looped breadth-first (Lamy-Poirier, MLSys 2023): a chunk runs every microbatch before the next
/// chunk starts; backwards come in reverse. All M V activations are kept. Bubble (P - 1)(F + B)/V
/// for M >= P; larger for smaller M, unless V = 1.
Schedule make_looped_bfs(int ranks, int microbatches, int chunks);

/// Interleaved with split backwards (Qi et al., ICLR 2024: ZB1P, interleaved): half the warm-up of
/// interleaved 1F1B, and each W fills a gap r steps later. M as for interleaved 1F1B. Bubble
/// (P - 1)(F + I + W)/(3V) for F = I = W and P dividing M; P V activations when held until W.
Schedule make_interleaved_zb(int ranks, int microbatches, int chunks);

/// ZB-H1 (Qi et al., ICLR 2024, section 2.1): 1F1B that defers r weight gradients until the end
/// and, as in the authors' code, takes the newest possible one. Bubble (P - 1)(F + I - W) for
/// M >= P and W no longer than F and I; with a transfer time c, short compared with W, longer by
/// 4(P - 1)c for M > P. Every rank keeps min(M, P) activations, counted until W: as many as 1F1B's
/// first rank.
Schedule make_zb_h1(int ranks, int microbatches);

/// ZB-H2 (section 2.2): 2(P - r) - 1 warm-up forwards, W delayed by 2r. Bubble (P - 1)(F + I - 2W)
/// for M >= 2P - 1 and W no longer than F and I, with transfers longer by 2(P - 1)c. It is measured
/// over the longest span of one rank, because the steps of neighboring ranks are not synchronized.
/// Every rank keeps min(M, 2P - 1) activations, counted until W.
Schedule make_zb_h2(int ranks, int microbatches);

/// ZB-V (Qi et al., ICLR 2024, section 6) in its handcrafted order, for F = I = W: two chunks per
/// rank, down and up. For M >= 2P - 1, the bubble of the longest span is 0 and every rank keeps 2P
/// activations; for smaller M there is a bubble and fewer activations.
Schedule make_zbv(int ranks, int microbatches);

/// DualPipeV (DeepSeek-AI 2025, "cut in half" by Sea AI Lab): DualPipe on a V of two chunks per
/// rank. Needs M >= 2P. Bubble (P - 1)(F&B + B - 3W) in chunk times, for F = I no shorter than W,
/// where F&B is the time of a fused pair. Every rank keeps 2P + 1 activations.
Schedule make_dualpipev(int ranks, int microbatches);

/// DualPipe (DeepSeek-V3, arXiv 2412.19437, section 3.2.1): microbatches 0 to M/2 - 1 enter at rank
/// 0, the others at rank P - 1. Every rank holds the parameters of two stages, r and P - 1 - r.
/// Needs even P and M, and M >= 2P. Bubble (P/2 - 1)(F&B + B - 3W) for F = I no shorter than W;
/// every rank keeps P + 1 activations.
Schedule make_dualpipe(int ranks, int microbatches);

/// Chimera (Li and Hoefler, SC 2021): two opposite 1F1B pipelines of M/2 microbatches each, merged;
/// every rank holds the parameters of two stages. Needs even P and M. Units of P microbatches
/// follow each other directly. If P divides M and F = B, the bubble fraction is
/// (P - 2)/(2M + P - 2); it is larger if the last unit is not full. Ranks keep between P/2 + 1 and
/// P activations for M >= P.
Schedule make_chimera(int ranks, int microbatches);

/// Hanayo (Liu et al., SC 2023): W waves, V = 2W chunks per rank in a zigzag; each rank takes the
/// oldest backward that is ready before any forward. At most 3P/2 microbatches are in flight, P of
/// them when M = P; the bubble is then 4(P - 1) forwards of a chunk for W = 1 and B = 2F.
Schedule make_hanayo(int ranks, int microbatches, int waves);

/// PipeDream (Narayanan et al., SOSP 2019): asynchronous 1F1B. The order is that of 1F1B, but every
/// backward is followed by an optimizer step (`LoweringOptions::step_every` = 1). Rank r therefore
/// keeps P - r weight versions if M >= 2(P - r) - 2, and at most that many otherwise. In its steady
/// state there is no bubble.
Schedule make_pipedream(int ranks, int microbatches);

/// PipeDream-2BW (Narayanan et al., ICML 2021): PipeDream with a step every `batch` >= P
/// microbatches of M, and two weight versions on every rank except the last, which needs one. M
/// must be a multiple of `batch`.
Schedule make_pipedream_2bw(int ranks, int microbatches, int batch);

/// Forward-only schedule with V chunks per rank in a loop. Bubble (P - 1) F/V if P divides M,
/// otherwise larger unless V = 1; no activations are kept.
Schedule make_inference(int ranks, int microbatches, int chunks = 1);

/// Data parallelism as a schedule: every rank holds the whole model and runs its own M microbatches
/// through it (rank r those from r M on).
Schedule make_data_parallel(int ranks, int microbatches);

/// The orders "gpipe", "1f1b" and "inference" on any placement, also with uneven ranks. gpipe and
/// inference run one stage after another. Whenever a rank is free, 1f1b prefers a backward that is
/// ready, then the forward of the earliest microbatch, as long as no stage has more microbatches in
/// flight than there are stages from it to the end.
Schedule make_on_placement(const std::string& name, const std::vector<int>& rank_of_stage,
                           int microbatches);

}  // namespace pipewright::plan
