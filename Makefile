# SPDX-License-Identifier: MIT
# make                  build/launch, build/liblaunch.{a,so}, build/launch-run, build/launch-bench, the examples
# make check            installs what is missing, builds, runs all tests, two at a time
#                       (T=pattern JOBS=1 STRICT=1 SAN=address,undefined)
# make demo             the main job on this machine
# make lint             format, clang-tidy, the house rules
# make analyze          cppcheck and gcc's -fanalyzer over the sources: minutes
# make bench            the numbers, beside the peers' (ITEMS='start memory --quick')
# make bench-deps       installs these, where apt-get and root are there (TORCH=1: PyTorch too, in build/bench-venv)
# make fuzz             libFuzzer on all that comes from outside, FUZZ_SECONDS=60 each (T=board for one); needs clang
# make example          config/example.yaml anew, from the table of settings
# make torture          does random things to N=200 random jobs, lets jobs race for GPUs N=200 times, heals one HEALS=1000 times   (SEED=)
# make soak             two jobs that lose ranks for HOURS=2: flat memory and descriptors, logged in build/soak.csv (SEED=)
# make install clean deps
# make deb              build/launch_VERSION_ARCH.deb: what install makes, as a Debian package
#
# CC=gcc|clang  V=1 shows whole commands  NCCL=0 RCCL=0 leave NCCL or RCCL out  CUDA_HOME= NCCL_HOME= ROCM_HOME= say where to look
# PREFIX=/usr/local DESTDIR=

ifeq ($(origin CC),default)
CC := gcc
endif
PREFIX ?= /usr/local
DESTDIR ?=
NCCL ?= 1
CUDA_HOME ?=
NCCL_HOME ?=
RCCL ?= 1
ROCM_HOME ?=
T ?=
JOBS ?= 2
SAN ?=
V ?=

VERSION := $(shell sed -n 's/^.define LAUNCH_VERSION "\(.*\)"/\1/p' worker/launch.h)
comma := ,
B := build$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))
Q := $(if $(V),,@)
# $(call say,CC file): the short line; nothing with V=1, where the command itself shows.
say = $(if $(V),,@echo '  $(1)')

# ---- flags ----
# One set of objects for programs, archives and shared objects: hence -fPIC everywhere.
CFLAGS ?= -O2 -g
OUR_CFLAGS := -std=gnu17 -D_GNU_SOURCE -Wall -Wextra -Werror -fPIC -fvisibility=hidden -pthread
OUR_CFLAGS += -Wshadow -Wconversion -Wno-sign-conversion -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wundef
LIBS := -pthread -ldl
# What a program that reads other users' bytes should have: canaries, checked copies, return addresses that are checked where the
# processor can, read-only relocations, nothing executable that is writable. tests/e2e/build.sh looks whether it is there.
HARDEN := -fstack-protector-strong -fstack-clash-protection -Wformat -Werror=format-security
HARDEN += $(if $(filter x86_64%,$(shell $(CC) -dumpmachine 2>/dev/null)),-fcf-protection)
HARDEN += $(if $(SAN),,$(if $(filter -O -O1 -O2 -O3 -Os,$(CFLAGS)),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
HARDEN_LD := -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack
OUR_CFLAGS += $(HARDEN)
override LDFLAGS += $(HARDEN_LD)
ifneq ($(SAN),)
OUR_CFLAGS += -fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer
override LDFLAGS += -fsanitize=$(SAN)
# TSan knows no fences. The one there is (worker/heal.c) is for other processes, which TSan can't see anyway.
OUR_CFLAGS += $(if $(filter thread,$(SAN)),$(if $(findstring clang,$(CC)),,-Wno-tsan))
endif

# libuv and libyaml go into the program: one file to copy. Debian calls the archive libuv_a.a, Ubuntu libuv.a.
find_lib = $(filter /%,$(shell $(CC) -print-file-name=$(1) 2>/dev/null))
LIBUV := $(firstword $(call find_lib,libuv_a.a) $(call find_lib,libuv.a) -luv)
LIBYAML := $(firstword $(call find_lib,libyaml.a) -lyaml)

# ---- CUDA and NCCL, if both are here ----
MULTIARCH := $(shell $(CC) -print-multiarch 2>/dev/null)
CUDA_ROOTS := $(if $(CUDA_HOME),$(CUDA_HOME),/usr/local/cuda /usr)
NCCL_ROOTS := $(if $(NCCL_HOME),$(NCCL_HOME),$(CUDA_ROOTS) /usr/local /usr)
# $(call in_roots,roots,names): the first file there is. Wheels carry libnccl.so.2 only, so names may be several.
in_roots = $(firstword $(foreach r,$(1),$(foreach n,$(2),$(wildcard $(r)/$(n)))))
in_libs = $(call in_roots,$(1),$(foreach n,$(2),lib64/$(n) lib/$(n) lib/$(MULTIARCH)/$(n)))
CUDA_H := $(call in_roots,$(CUDA_ROOTS),include/cuda_runtime_api.h)
CUDA_SO := $(call in_libs,$(CUDA_ROOTS),libcudart.so libcudart.so.13 libcudart.so.12 libcudart.so.11.0)
NCCL_H := $(call in_roots,$(NCCL_ROOTS),include/nccl.h)
NCCL_SO := $(call in_libs,$(NCCL_ROOTS),libnccl.so libnccl.so.2)
NCCL_MISSING := $(if $(wildcard worker/nccl.c),,worker/nccl.c)
NCCL_MISSING += $(if $(CUDA_H),,cuda_runtime_api.h (set CUDA_HOME=...)) $(if $(CUDA_SO),,libcudart.so (set CUDA_HOME=...))
NCCL_MISSING += $(if $(NCCL_H),,nccl.h (set NCCL_HOME=...)) $(if $(NCCL_SO),,libnccl.so (set NCCL_HOME=...))
ifeq ($(NCCL),0)
NCCL_WHY := NCCL=0
else ifneq ($(strip $(NCCL_MISSING)),)
NCCL_WHY := no $(strip $(NCCL_MISSING))
else
WITH_NCCL := 1
NCCL_CFLAGS := $(addprefix -isystem ,$(filter-out /usr/include,$(sort $(dir $(CUDA_H)) $(dir $(NCCL_H)))))
NCCL_CFLAGS := $(subst /include/,/include,$(NCCL_CFLAGS))
NCCL_LIBS := $(NCCL_SO) $(CUDA_SO)
NCCL_RPATH := $(addprefix -Wl$(comma)-rpath$(comma),$(sort $(patsubst %/,%,$(dir $(NCCL_LIBS)))))
endif

# ---- HIP and RCCL, likewise: the same sources with HIP's names ----
# ROCm 5 deprecates hipHostAlloc() for hipHostMalloc(), ROCm 6.3 the other way round.
ON_HIP := -D__HIP_PLATFORM_AMD__ -include worker/gpu_api.h -Wno-deprecated-declarations
ROCM_ROOTS := $(or $(ROCM_HOME),$(ROCM_PATH) /opt/rocm /usr)
HIP_H := $(call in_roots,$(ROCM_ROOTS),include/hip/hip_runtime_api.h)
HIP_SO := $(call in_libs,$(ROCM_ROOTS),libamdhip64.so libamdhip64.so.7 libamdhip64.so.6 libamdhip64.so.5)
RCCL_H := $(call in_roots,$(ROCM_ROOTS),include/rccl/rccl.h)
RCCL_SO := $(call in_libs,$(ROCM_ROOTS),librccl.so librccl.so.1)
RCCL_MISSING := $(if $(HIP_H),,hip/hip_runtime_api.h) $(if $(HIP_SO),,libamdhip64.so)
RCCL_MISSING += $(if $(RCCL_H),,rccl/rccl.h) $(if $(RCCL_SO),,librccl.so)
ifeq ($(RCCL),0)
RCCL_WHY := RCCL=0
else ifneq ($(strip $(RCCL_MISSING)),)
# Told where it was asked for, or there is an AMD GPU to use it; a CPU's node has gpu_id 0.
KFD_NODES := $(wildcard /sys/class/kfd/kfd/topology/nodes/*/gpu_id)
ifneq ($(ROCM_HOME)$(if $(KFD_NODES),$(shell grep -lxv 0 $(KFD_NODES) 2>/dev/null)),)
RCCL_WHY := no $(strip $(RCCL_MISSING)) (set ROCM_HOME=...)
endif
else
WITH_RCCL := 1
RCCL_CFLAGS := -D__HIP_PLATFORM_AMD__ $(patsubst %/include/,-isystem %/include,$(filter-out /usr/include/,$(sort $(HIP_H:hip/hip_runtime_api.h=) $(RCCL_H:rccl/rccl.h=))))
RCCL_LIBS := $(RCCL_SO) $(HIP_SO)
RCCL_RPATH := $(addprefix -Wl$(comma)-rpath$(comma),$(sort $(patsubst %/,%,$(dir $(RCCL_LIBS)))))
endif
# What the examples are built with.
GPU := $(if $(WITH_NCCL),nccl,$(if $(WITH_RCCL),rccl))
GPU_CFLAGS := $(if $(WITH_NCCL),$(NCCL_CFLAGS),$(if $(WITH_RCCL),$(RCCL_CFLAGS) $(ON_HIP)))

# ---- what is built of what ----
objs = $(patsubst %.c,$(B)/obj/%.o,$(1))
PROTO := $(call objs,$(wildcard proto/*.c))
CONFIG := $(call objs,$(wildcard config/*.c))
AGENT := $(call objs,$(wildcard agent/*.c agent/*/*.c))
NCCL_FILES := $(wildcard worker/nccl*.c)
# The job behind `launch bench` and `launch check`, one program for each kind of memory.
BENCH_JOB := $(filter-out worker/bench_nccl.c worker/bench_host.c,$(wildcard worker/bench*.c))
APART := $(NCCL_FILES) $(wildcard worker/bench*.c) worker/runner.c
WORKER := $(call objs,$(filter-out $(APART),$(wildcard worker/*.c)))
# main() for jobs without one: an archive member apart, made of files that use exported functions only.
WORKER_MAIN := $(filter %/worker/main.o %/worker/run.o,$(WORKER))
TESTS := $(call objs,tests/harness.c $(wildcard $(addprefix tests/,$(addsuffix /test_*.c,proto config agent worker))))
TESTED := $(filter-out %/agent/main.o %/worker/main.o,$(AGENT) $(CONFIG) $(WORKER) $(PROTO))
TESTED += $(call objs,$(filter-out worker/bench.c,$(BENCH_JOB)))
E2E := $(shell find tests/e2e -maxdepth 1 -perm -u+x \( -name '*.sh' -o -name '*.py' \) 2>/dev/null | sort)
ifneq ($(wildcard tests/fake/nccl.c),)
FAKES := $(addprefix $(B)/tests/fake/,libcudart.so.13 libnccl.so.2 libnvidia-ml.so.1 libnomemory.so libpidfd.so libfaults.so)
FAKES += $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/fake/*_job.c)) $(B)/tests/fake/launch-bench-nccl
FAKES += $(addprefix $(B)/tests/fake/rccl/,rank_sum heal_job launch-bench-rccl)
endif
# What tests/bench/run.py measures with.
BENCH := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/bench/*.c))
FUZZERS := $(patsubst tests/%.c,$(B)/tests/%,$(filter-out %/driver.c,$(wildcard tests/fuzz/*.c)))
EXAMPLES := $(foreach d,$(patsubst %/,%,$(wildcard examples/*/)),$(if $(wildcard $(d)/$(notdir $(d)).c),$(notdir $(d))))
FAKE_EXAMPLES := $(if $(FAKES),$(addprefix $(B)/tests/fake/,$(EXAMPLES)))

BUILT := $(if $(AGENT),$(B)/launch)
ifneq ($(WORKER),)
BUILT += $(B)/liblaunch.a $(B)/liblaunch.so
BUILT += $(addprefix $(B)/examples/,$(EXAMPLES) $(if $(filter rank_sum,$(EXAMPLES)),rank_sum.so))
GPUS := $(if $(WITH_NCCL),nccl) $(if $(WITH_RCCL),rccl)
BUILT += $(foreach g,$(GPUS),$(B)/liblaunch_$(g).a $(B)/liblaunch_$(g).so)
HELPERS := $(B)/launch-run $(B)/launch-bench $(addprefix $(B)/launch-bench-,$(GPUS))
BUILT += $(HELPERS)
endif

.PHONY: all check run-tests demo lint analyze bench bench-deps fuzz example torture soak install deb clean deps tools FORCE
.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:

all: $(BUILT)
	@$(if $(RCCL_WHY),echo 'rccl: skipped$(comma) $(RCCL_WHY)';) $(if $(NCCL_WHY),$(if $(WITH_RCCL),:,echo 'nccl: skipped$(comma) $(NCCL_WHY)'),:)

# Rebuild when the compiler or a flag changes.
FLAGS := $(CC) $(CFLAGS) $(OUR_CFLAGS) $(LDFLAGS) $(LIBUV) $(LIBYAML) $(NCCL_CFLAGS) $(NCCL_LIBS) $(RCCL_CFLAGS) $(RCCL_LIBS)
$(B)/flags: FORCE
	@mkdir -p $(@D); echo '$(FLAGS)' | cmp -s - $@ || echo '$(FLAGS)' >$@

rccl_objs = $(patsubst %.c,$(B)/obj/rccl/%.o,$(1))
$(call objs,$(NCCL_FILES) worker/bench_nccl.c): OUR_CFLAGS += $(NCCL_CFLAGS)
$(B)/obj/rccl/%.o: OUR_CFLAGS += $(RCCL_CFLAGS) $(ON_HIP)
$(B)/obj/examples/%.o: OUR_CFLAGS += -fvisibility=default -Iworker $(GPU_CFLAGS) $(if $(GPU),-DLAUNCH_WITH_NCCL)
compile = $(CC) $(CFLAGS) $(OUR_CFLAGS) $(CPPFLAGS) -MMD -MP -c $< -o $@
$(B)/obj/%.o: %.c $(B)/flags
	$(call say,CC $<)
	@mkdir -p $(@D)
	$(Q)$(compile)
$(B)/obj/rccl/%.o: %.c $(B)/flags
	$(call say,CC $< for RCCL)
	@mkdir -p $(@D)
	$(Q)$(compile)

# The libraries of the backend that a target is named after; examples have $(GPU).
BACKEND_LIBS = $($(BACKEND)_LIBS) $($(BACKEND)_RPATH)
$(B)/%nccl $(B)/%nccl.so: BACKEND = NCCL
$(B)/%rccl $(B)/%rccl.so: BACKEND = RCCL
$(B)/examples/% $(B)/tests/gpu/%: BACKEND = $(if $(WITH_NCCL),NCCL,RCCL)

$(B)/launch: $(AGENT) $(CONFIG) $(PROTO)
	$(call say,LD $@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LIBUV) $(LIBYAML) $(LIBS) -o $@

# An archive is one object with everything but launch_* made local, so that a job's own board_open()
# does not clash with ours.
# $(call localize,OBJECT,parts)
localize = $(LD) -r $(2) -o $(1) && objcopy --localize-hidden $(1)

$(B)/liblaunch.a: $(filter-out $(WORKER_MAIN),$(WORKER)) $(PROTO) $(WORKER_MAIN)
	$(call say,AR $@)
	$(Q)rm -f $@ && $(call localize,$@.o,$(filter-out $(WORKER_MAIN),$^))
	$(Q)$(if $(WORKER_MAIN),$(call localize,$@.main.o,$(WORKER_MAIN)))
	$(Q)$(AR) rcs $@ $@.o $(if $(WORKER_MAIN),$@.main.o)

$(B)/liblaunch_nccl.a $(B)/liblaunch_nccl.so: $(call objs,$(NCCL_FILES)) $(PROTO)
$(B)/liblaunch_rccl.a $(B)/liblaunch_rccl.so: $(call rccl_objs,$(NCCL_FILES)) $(PROTO)
$(B)/liblaunch_%.a:
	$(call say,AR $@)
	$(Q)rm -f $@ && $(call localize,$@.o,$^) && $(AR) rcs $@ $@.o

$(B)/liblaunch.so: $(WORKER) $(PROTO)
	$(call say,LD $@)
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,-soname,$(@F).0 $^ $(LIBS) -o $@
	@ln -sf $(@F) $@.0

$(B)/liblaunch_%.so: $(B)/liblaunch.so
	$(call say,LD $@)
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,-soname,$(@F).0 $(filter %.o,$^) -L$(B) -llaunch $(BACKEND_LIBS) $(LIBS) \
	    -Wl,-rpath,'$$ORIGIN' -o $@
	@ln -sf $(@F) $@.0

# Beside the libraries in build/, or in PREFIX/libexec/launch.
$(B)/launch-run: $(B)/obj/worker/runner.o $(filter %/worker/run.o,$(WORKER)) $(B)/liblaunch.so
	$(call say,LD $@)
	$(Q)$(CC) $(LDFLAGS) $(filter %.o,$^) -L$(B) -llaunch $(LIBS) -o $@ \
	    -Wl,-rpath,'$$ORIGIN:$$ORIGIN/../lib:$$ORIGIN/../../lib'

$(B)/launch-bench: $(call objs,$(BENCH_JOB) worker/bench_host.c) $(B)/liblaunch.a
	$(call say,LD $@)
	$(Q)$(CC) $(LDFLAGS) $^ $(LIBS) -lm -o $@

$(B)/launch-bench-nccl: $(call objs,worker/bench_nccl.c)
$(B)/launch-bench-rccl: $(call rccl_objs,worker/bench_nccl.c)
$(B)/launch-bench-%: $(call objs,$(BENCH_JOB)) $(B)/liblaunch_%.a $(B)/liblaunch.a
	$(call say,LD $@)
	$(Q)$(CC) $(LDFLAGS) $(filter %.o,$^) $(filter %.a,$^) $(BACKEND_LIBS) $(LIBS) -lm -o $@

EXAMPLE_LIBS := $(if $(GPU),$(B)/liblaunch_$(GPU).a) $(B)/liblaunch.a
EXAMPLE_SOS := $(if $(GPU),$(B)/liblaunch_$(GPU).so) $(B)/liblaunch.so
.SECONDEXPANSION:
$(B)/examples/%: $(B)/obj/examples/$$*/$$*.o $(EXAMPLE_LIBS)
	$(call say,LD $@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) $^ $(BACKEND_LIBS) $(LIBS) -lm -o $@

# The same job as a shared object, for launch-run.
$(B)/examples/%.so: $(B)/obj/examples/$$*/$$*.o $(EXAMPLE_SOS)
	$(call say,LD $@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -shared $< -L$(B) $(addprefix -llaunch_,$(GPU)) -llaunch $(BACKEND_LIBS) \
	    -Wl,-rpath,'$$ORIGIN/..' $(LIBS) -lm -o $@

# ---- tests ----
$(B)/tests/unit: $(TESTS) $(TESTED)
	$(call say,LD $@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) $^ $(LIBUV) $(LIBYAML) $(LIBS) -lm -o $@

# CUDA, NCCL and NVML that run on a CPU, under the real sonames; and the workers tests/fake/NAME_job.c and the
# examples with worker/nccl.c, compiled and linked against them. In rccl/ the same sources as HIP and RCCL, and some of the workers.
FAKE = $(B)/tests/fake
fake_objs = $(patsubst %.c,$(B)/fake-obj/%.o,$(1))
fake_rccl_objs = $(patsubst %.c,$(B)/fake-obj/rccl/%.o,$(1))
$(B)/fake-obj/%.o: OUR_CFLAGS += -fvisibility=default -Itests/fake/include
$(B)/fake-obj/examples/%.o $(B)/fake-obj/rccl/examples/%.o: OUR_CFLAGS += -Iworker -DLAUNCH_WITH_NCCL
$(B)/fake-obj/rccl/%.o: OUR_CFLAGS += $(ON_HIP)
$(B)/fake-obj/rccl/%.o: %.c $(B)/flags
	$(call say,CC $< against the fakes for RCCL)
	@mkdir -p $(@D)
	$(Q)$(compile)
$(B)/fake-obj/%.o: %.c $(B)/flags
	$(call say,CC $< against the fakes)
	@mkdir -p $(@D)
	$(Q)$(compile)

FAKE_NCCL := tests/fake/nccl.c tests/fake/nccl_ops.c tests/fake/nccl_log.c tests/fake/nccl_topo.c tests/fake/nccl_types.c worker/bench_float.c
$(FAKE)/libcudart.so.13: $(call fake_objs,tests/fake/cudart.c)
$(FAKE)/libnccl.so.2: $(call fake_objs,$(FAKE_NCCL)) $(FAKE)/libcudart.so.13
$(FAKE)/rccl/libamdhip64.so.6: $(call fake_rccl_objs,tests/fake/cudart.c)
$(FAKE)/rccl/librccl.so.1: $(call fake_rccl_objs,$(FAKE_NCCL)) $(FAKE)/rccl/libamdhip64.so.6
$(FAKE)/libnvidia-ml.so.1: $(call fake_objs,tests/fake/nvml.c tests/fake/nvml_machine.c tests/fake/nvml_events.c tests/fake/nvml_health.c)
$(FAKE)/libnomemory.so: $(call fake_objs,tests/fake/nomemory.c)
$(FAKE)/libpidfd.so: $(call fake_objs,tests/fake/pidfd.c)
$(FAKE)/libfaults.so: $(call fake_objs,tests/fake/faults.c)
link_fake_lib = $(CC) $(LDFLAGS) -shared -Wl,-soname,$(@F) $^ $(LIBS) -lm -o $@
$(FAKE)/lib%:
	$(call say,LD $@)
	@mkdir -p $(@D)
	$(Q)$(link_fake_lib)
$(FAKE)/rccl/lib%:
	$(call say,LD $@)
	@mkdir -p $(@D)
	$(Q)$(link_fake_lib)

FAKE_PARTS := $(call fake_objs,$(NCCL_FILES)) $(PROTO) $(B)/liblaunch.a $(FAKE)/libnccl.so.2 $(FAKE)/libcudart.so.13
link_fake = $(CC) $(LDFLAGS) $(filter %.o,$^) $(filter-out %.o,$^) $(LIBS) -lm -Wl,-rpath,'$$ORIGIN' -o $@
$(FAKE)/%_job: $(B)/fake-obj/tests/fake/%_job.o $(FAKE_PARTS)
	$(call say,LD $@)
	@mkdir -p $(@D)
	$(Q)$(link_fake)
$(FAKE)/launch-bench-nccl: $(call fake_objs,$(BENCH_JOB) worker/bench_nccl.c) $(FAKE_PARTS)
	$(call say,LD $@)
	@mkdir -p $(@D)
	$(Q)$(link_fake)
$(FAKE_EXAMPLES): $(FAKE)/%: $(B)/fake-obj/examples/$$*/$$*.o $(FAKE_PARTS)
	$(call say,LD $@)
	@mkdir -p $(@D)
	$(Q)$(link_fake)
$(FAKE)/rccl/rank_sum: $(call fake_rccl_objs,examples/rank_sum/rank_sum.c)
$(FAKE)/rccl/heal_job: $(call fake_rccl_objs,tests/fake/heal_job.c)
$(FAKE)/rccl/launch-bench-rccl: $(call fake_objs,$(BENCH_JOB)) $(call fake_rccl_objs,worker/bench_nccl.c)
$(addprefix $(FAKE)/rccl/,rank_sum heal_job launch-bench-rccl): $(call fake_rccl_objs,$(NCCL_FILES)) $(PROTO) $(B)/liblaunch.a \
    $(FAKE)/rccl/librccl.so.1 $(FAKE)/rccl/libamdhip64.so.6
	$(call say,LD $@)
	$(Q)$(link_fake)

# Helpers are as small as they can be: what they cost is measured with them. Only those named here see the agent.
$(B)/tests/bench/deathwatch: $(filter-out %/agent/main.o,$(AGENT)) $(CONFIG)
$(B)/tests/bench/%: $(B)/obj/tests/bench/%.o $(PROTO) $(B)/liblaunch.a
	$(call say,LD $@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) $(filter %.o,$^) $(filter %.a,$^) $(if $(findstring /obj/agent/,$^),$(LIBUV) $(LIBYAML)) $(LIBS) -lm -o $@

# The jobs of tests/gpu, with the real libraries; with the fakes heal is $(FAKE)/gpu_heal. nvml_count.so is preloaded.
$(B)/obj/tests/gpu/%.o: OUR_CFLAGS += $(GPU_CFLAGS)
$(B)/tests/gpu/%: $(B)/obj/tests/gpu/%.o $(EXAMPLE_LIBS)
	$(call say,LD $@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) $^ $(BACKEND_LIBS) $(LIBS) -o $@
$(B)/tests/gpu/nvml_count.so: $(B)/obj/tests/gpu/nvml_count.o $(PROTO)
	$(call say,LD $@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,-soname,libnvidia-ml.so.1 $^ $(LIBS) -o $@
$(FAKE)/gpu_%: $(B)/fake-obj/tests/gpu/%.o $(FAKE_PARTS)
	$(call say,LD $@)
	@mkdir -p $(@D)
	$(Q)$(link_fake)

# With SAN=fuzzer-no-link,... libFuzzer drives them; else driver.c, which runs the files that it is given.
$(FUZZERS): $(B)/tests/fuzz/%: $(B)/obj/tests/fuzz/%.o $(if $(findstring fuzzer,$(SAN)),,$(B)/obj/tests/fuzz/driver.o) $(TESTED)
	$(call say,LD $@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) $(if $(findstring fuzzer,$(SAN)),-fsanitize=fuzzer) $^ $(LIBUV) $(LIBYAML) $(LIBS) -lm -o $@

# The same as an MPI program, with each MPI that has its headers here.
MPIS = $(foreach m,openmpi mpich,$(if $(shell echo '#include <mpi.h>' | mpicc.$(m) -E - 2>/dev/null | head -1),$(m)))
$(B)/tests/bench/collective_%: tests/bench/collective.c proto/clock.h
	$(call say,MPICC $@)
	@mkdir -p $(@D)
	$(Q)mpicc.$* -std=gnu17 -O2 -DWITH_MPI $< -o $@

# Two steps, because a make that has just installed libuv must look for it again.
check: deps
	@$(MAKE) --no-print-directory all run-tests

run-tests: $(BUILT) $(B)/tests/unit $(FAKES) $(FAKE_EXAMPLES) $(BENCH) $(FUZZERS)
	@LAUNCH='$(CURDIR)/$(B)/launch' BUILD='$(CURDIR)/$(B)' SRC='$(CURDIR)' STRICT='$(STRICT)' \
	    TEST_TIMEOUT_SCALE="$${TEST_TIMEOUT_SCALE:-$(if $(SAN),4,1)}" \
	    $(B)/tests/unit -j '$(JOBS)' -t '$(T)' $(addprefix '$(CURDIR)'/,$(E2E))

demo: DEMO := 1
demo: deps
	@$(MAKE) --no-print-directory all
	@n=8; for gpu in /dev/nvidia[0-9]* /sys/class/kfd/kfd/topology/nodes/*/gpu_id; do \
	    case $$gpu in /dev/nvidia*) [ -e $$gpu ] && n=gpu ;; \
	    *) [ "$$(cat $$gpu 2>/dev/null || echo 0)" != 0 ] && n=gpu ;; esac; done; \
	set -- $(B)/launch --nproc-per-node=$$n $(B)/examples/rank_sum; echo "$$*"; exec "$$@"

# What the build (and, but for a demo, the tests) need. `have` asks the compiler, not a package manager: milliseconds.
deps:
	@need=; have() { echo "#include <$$1>" | $(CC) -E - >/dev/null 2>&1; }; \
	command -v $(CC) >/dev/null || need="$$need $(notdir $(firstword $(CC)))"; \
	have stdio.h || need="$$need libc6-dev"; \
	have uv.h || need="$$need libuv1-dev"; \
	have yaml.h || need="$$need libyaml-dev"; \
	command -v objcopy >/dev/null || need="$$need binutils"; \
	[ -n '$(DEMO)' ] || command -v python3 >/dev/null || need="$$need python3"; \
	[ -n '$(DEMO)' ] || command -v pgrep >/dev/null || need="$$need procps"; \
	[ -n "$$need" ] || exit 0; \
	command -v apt-get >/dev/null || { echo "deps: please install:$$need" >&2; exit 1; }; \
	[ "$$(id -u)" = 0 ] || sudo=sudo; \
	echo "deps: installing$$need"; \
	install() { $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y $$need >/dev/null 2>&1; }; \
	install || { $$sudo apt-get update -qq >/dev/null && install; } || \
	    { echo "deps: apt-get could not install:$$need" >&2; exit 1; }

# ---- the house rules ----
SOURCES := $(wildcard $(foreach d,proto config agent agent/* worker tests tests/* examples/*,$(d)/*.c $(d)/*.h))
CLANG_FORMAT ?= clang-format
CLANG_TIDY ?= clang-tidy
# Without NCCL's headers its backend can't be read by clang-tidy.
TIDY := $(filter-out $(if $(WITH_NCCL),,$(NCCL_FILES) worker/bench_nccl.c),$(filter proto/% config/% agent/% worker/%.c,$(filter %.c,$(SOURCES))))

lint: $(if $(WORKER),$(B)/liblaunch.so)
	@failed=; note() { echo "lint: $$1 failed"; failed=1; }; \
	$(CLANG_FORMAT) --dry-run -Werror $(SOURCES) || note clang-format; \
	printf '%s\n' $(TIDY) | xargs -P 2 -n 4 sh -c '$(CLANG_TIDY) --quiet "$$@" -- -std=gnu17 -D_GNU_SOURCE \
	    $(NCCL_CFLAGS) 2>/dev/null' tidy || note clang-tidy; \
	for script in tests/lint/*.sh; do BUILD='$(CURDIR)/$(B)' CC='$(CC)' $$script || note $$script; done; \
	[ -z "$$failed" ] && echo 'lint: clean'

# Slower than lint, and wrong more often: what they are wrong about is listed with a reason in tests/lint/*.supp.
analyze:
	@failed=; cppcheck -q --std=c11 --enable=warning,portability,performance --inline-suppr -D_GNU_SOURCE -D__x86_64__ \
	    --library=posix,gnu --template=gcc --suppressions-list=tests/lint/cppcheck.supp --error-exitcode=1 \
	    proto config agent worker || failed=1; \
	for file in $(TIDY); do gcc -std=gnu17 -D_GNU_SOURCE -O1 -Werror -fanalyzer $(NCCL_CFLAGS) -c -o /dev/null \
	    $$(sed -n "/^#/d; s|^all ||p; s|^$$file ||p" tests/lint/fanalyzer.supp) $$file || failed=1; done; \
	[ -z "$$failed" ] && echo 'analyze: clean'

# What to measure, and options of tests/bench/run.py: make bench ITEMS='start memory --quick'
ITEMS ?=
# The MPIs are asked for late, by second expansion: no other make pays for it.
bench: all $(BENCH) $$(addprefix $(B)/tests/bench/collective_,$$(MPIS))
	@BUILD='$(CURDIR)/$(B)' exec python3 tests/bench/run.py $(ITEMS)

bench-deps:
	@BUILD='$(B)' tests/bench/deps.sh

# New inputs that reach new code stay in build/, those that fail, too; the corpora in tests/fuzz are kept small by hand.
# A slow machine is no finding: -timeout is for loops without an end.
FUZZ_SECONDS ?= 60
FUZZ_FLAGS ?=
FUZZ_SAN := fuzzer-no-link,address,undefined
fuzz:
	@$(MAKE) --no-print-directory CC=clang SAN=$(FUZZ_SAN) fuzz-all

fuzz-all: $(addprefix fuzz-,$(foreach f,$(notdir $(FUZZERS)),$(if $(or $(if $(T),,all),$(findstring $(T),$(f))),$(f))))
fuzz-%: $(B)/tests/fuzz/%
	@mkdir -p $(B)/corpus_$*
	$< -max_total_time=$(FUZZ_SECONDS) -timeout=30 -max_len=4096 -verbosity=0 -print_final_stats=1 -artifact_prefix=$(B)/ \
	    $(FUZZ_FLAGS) $(B)/corpus_$* tests/fuzz/corpus_$*

example: $(B)/launch
	$< --example-config >config/example.yaml

# Kills, shortages and failing calls at random instants; SEED= replays. N=20000 is for a night, the short run is part of `make check`.
N ?= 200
HEALS ?= 1000
torture: $(B)/launch $(FAKES)
	python3 tests/torture/torture.py -n $(N) $(if $(SEED),-s $(SEED)) $<
	python3 tests/torture/leases.py -n $(N) $(if $(SEED),-s $(SEED)) $<
	python3 tests/torture/heal.py -n $(HEALS) $(if $(SEED),-s $(SEED)) $< $(B)/tests/fake/heal_job
	python3 tests/torture/heal.py -n 100 --gpus $(if $(SEED),-s $(SEED)) $< $(B)/tests/fake/heal_job

HOURS ?= 2
soak: $(B)/launch $(FAKES)
	python3 tests/torture/soak.py --hours $(HOURS) --log $(B)/soak.csv $(if $(SEED),-s $(SEED)) $< $(B)/tests/fake/heal_job

# ---- install ----
D = $(DESTDIR)$(PREFIX)
# $(call put_lib,liblaunch): archive, versioned shared object and its two links.
put_lib = install -m 644 $(B)/$(1).a $(D)/lib/ && \
	install -m 755 $(B)/$(1).so $(D)/lib/$(1).so.$(VERSION) && \
	ln -sf $(1).so.$(VERSION) $(D)/lib/$(1).so.0 && ln -sf $(1).so.0 $(D)/lib/$(1).so
# $(call put_pc,NAME,template,BACKEND,its libraries)
put_pc = sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' -e 's|@NAME@|$(1)|' -e 's|@BACKEND@|$(3)|' \
	-e 's|@CFLAGS@|$(subst -isystem ,-I,$($(3)_CFLAGS))|' \
	-e 's|@LIBS@|$(addprefix -L,$(sort $(patsubst %/,%,$(dir $($(3)_LIBS))))) $(4)|' worker/$(2).pc.in >$(D)/lib/pkgconfig/$(1).pc

# Manual page and completions: the program prints them.
$(B)/doc/%: $(B)/launch
	@mkdir -p $(@D)
	$(Q)$< help --$* >$@

install: all $(addprefix $(B)/doc/,man bash zsh fish)
	@mkdir -p $(D)/bin $(D)/libexec/launch $(D)/lib/pkgconfig $(D)/include
	install -m 755 $(B)/launch $(D)/bin/
	install -D -m 644 $(B)/doc/man $(D)/share/man/man1/launch.1
	install -D -m 644 $(B)/doc/bash $(D)/share/bash-completion/completions/launch
	install -D -m 644 $(B)/doc/zsh $(D)/share/zsh/site-functions/_launch
	install -D -m 644 $(B)/doc/fish $(D)/share/fish/vendor_completions.d/launch.fish
	install -m 755 $(HELPERS) $(D)/libexec/launch/
	install -m 644 worker/launch.h $(D)/include/
	$(call put_lib,liblaunch)
	$(call put_pc,launch,launch)
	$(if $(GPUS),install -m 644 worker/launch_nccl.h $(D)/include/)
	$(if $(WITH_NCCL),$(call put_lib,liblaunch_nccl))
	$(if $(WITH_NCCL),$(call put_pc,launch_nccl,launch_nccl,NCCL,-lnccl -lcudart))
	$(if $(WITH_RCCL),$(call put_lib,liblaunch_rccl))
	$(if $(WITH_RCCL),$(call put_pc,launch_rccl,launch_nccl,RCCL,-lrccl -lamdhip64))

# ---- a Debian package of what is installed ----
DEB_ROOT = $(B)/deb
DEB_ARCH = $(shell dpkg --print-architecture)
# What the programs need, by dpkg-dev. NCCL and CUDA, RCCL and HIP come from elsewhere.
DEB_NEEDS = $$(mkdir -p debian && touch debian/control && dpkg-shlibdeps -O --ignore-missing-info -lusr/lib \
	usr/bin/launch usr/libexec/launch/launch-run usr/libexec/launch/launch-bench usr/lib/liblaunch.so 2>debian/log | sed -n 's/^shlibs:Depends=//p')
define DEB_CONTROL
Package: launch
Version: $(VERSION)
Architecture: $(DEB_ARCH)
Maintainer: $(or $(DEBFULLNAME),launch developers) <$(or $(DEBEMAIL),root@localhost)>
Section: utils
Priority: optional
Depends: @NEEDS@
Suggests: libnccl2 | librccl1
Installed-Size: @SIZE@
Description: starts and watches the workers of a multi-GPU job
 A drop-in for torchrun on one server: starts the workers, gives each its rank,
 its environment and its GPU, watches over them, and brings the job back when
 one of them dies. With liblaunch, for jobs in C.
endef
export DEB_CONTROL

deb: all
	@command -v dpkg-shlibdeps >/dev/null || { echo 'deb: please install dpkg-dev' >&2; exit 1; }
	@rm -rf $(DEB_ROOT)
	@$(MAKE) --no-print-directory install DESTDIR=$(DEB_ROOT) PREFIX=/usr >/dev/null
	@install -D -m 644 LICENSE $(DEB_ROOT)/usr/share/doc/launch/copyright
	@gzip -9nc CHANGELOG.md >$(DEB_ROOT)/usr/share/doc/launch/changelog.gz
	@gzip -9n $(DEB_ROOT)/usr/share/man/man1/launch.1
	@cd $(DEB_ROOT) && strip --strip-unneeded usr/bin/launch usr/libexec/launch/* usr/lib/*.so.$(VERSION) && \
	strip --strip-debug usr/lib/*.a && mkdir DEBIAN && needs="$(DEB_NEEDS)" && \
	{ [ -n "$$needs" ] || { cat debian/log >&2; exit 1; }; } && rm -r debian && \
	mv usr/share/zsh/site-functions usr/share/zsh/vendor-completions && chmod 644 usr/lib/*.so.* && \
	echo "$$DEB_CONTROL" | sed "s/@NEEDS@/$$needs/; s/@SIZE@/$$(du -sk usr | cut -f1)/" >DEBIAN/control && \
	echo 'activate-noawait ldconfig' >DEBIAN/triggers && \
	for lib in usr/lib/*.so.0; do basename "$$lib" | sed 's/\.so\.0/ 0 launch (>= $(VERSION))/'; done >DEBIAN/shlibs && \
	find usr -type f | sort | xargs md5sum >DEBIAN/md5sums && chmod -R u=rwX,go=rX .
	@dpkg-deb --root-owner-group --build $(DEB_ROOT) $(B)/launch_$(VERSION)_$(DEB_ARCH).deb

clean:
	rm -rf build

-include $(shell find $(B)/obj $(B)/fake-obj -name '*.d' 2>/dev/null)
