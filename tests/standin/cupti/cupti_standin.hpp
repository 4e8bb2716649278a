#pragma once

// What tests tell the stand-in for CUPTI, found by dlsym in the library that they loaded.

#include "standin.hpp"

extern "C" {

/// How it behaves from now on, in words; the environment's PIPEWRIGHT_STANDIN_CUPTI says it for a
/// whole program. Empty: as CUPTI does.
///   version=120800           it is another one
///   refuse=cuptiSubscribe:35 that function answers with that number; may be said more than once
///   watcher=Nsight           somebody else watches already
///   late                     buffers come back with the flush behind the one that asks for them,
///                            on a thread of CUPTI's own
///   missing                  buffers never come back
///   drop=3                   that many records find no room
///   lose_calls=2             of every so many calls one is recorded without its call and label
///   longer=8                 records have so many bytes behind those of the headers
///   newer                    before each record comes one of a kind that only CUPTI knows
///   garbage                  behind the records of a buffer are bytes that are none
///   cut                      a buffer ends within its last record
///   no_calls                 calls are not recorded, and nothing said
///   play=FOLDER              buffers that PIPEWRIGHT_KEEP_CUPTI has kept, instead of its own
void pipewright_standin_cupti(const char* words);

/// Something that a device was given and has done: it is recorded, as far as that is switched on.
/// The stand-in for CUDA's runtime tells it by itself.
void pipewright_standin_cupti_hear(const PipewrightStandinWork* work);

}  // extern "C"
