#pragma once

// The functions with which tests control the stand-in for CUPTI, found by dlsym in the loaded
// library.

#include "standin.hpp"

extern "C" {

/// Sets the behavior from now on, as words; the environment variable PIPEWRIGHT_STANDIN_CUPTI sets
/// it for a whole program. The default (empty) is CUPTI's behavior.
///   version=120800           its version
///   refuse=cuptiSubscribe:35 this function fails with this error; can be repeated
///   watcher=Nsight           another subscriber exists already
///   late                     buffers are returned by the flush after the one that requests them,
///                            on a thread of CUPTI
///   missing                  buffers are never returned
///   drop=3                   the number of records that are dropped for lack of room
///   lose_calls=2             one of this many calls is recorded without its call and label
///   longer=8                 the number of bytes that records have beyond those of the headers
///   newer                    each record is preceded by one of a kind that only CUPTI knows
///   garbage                  a buffer's records are followed by other bytes
///   cut                      a buffer ends within its last record
///   no_calls                 calls are not recorded, without an error
///   play=FOLDER              buffers that PIPEWRIGHT_KEEP_CUPTI has stored, instead of its own
void pipewright_standin_cupti(const char* words);

/// Records a piece of work that a device has done, if its kind is enabled. The stand-in for CUDA's
/// runtime calls it.
void pipewright_standin_cupti_hear(const PipewrightStandinWork* work);

}  // extern "C"
